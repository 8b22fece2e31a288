"""One module per noun: its routes and their inputs. web/routing.py lists the package."""
