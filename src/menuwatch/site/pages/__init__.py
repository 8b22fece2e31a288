"""The pages of the public site: every module with a `router` is registered (`web.routing.include_package`)."""
