"""Shared by the API, dashboard and storefront: dependencies, authentication, request metrics, pages and assets, live updates."""
