"""What the faces share: the parts they stand on, who asks, what is counted of requests, pages and their assets, what is live."""
