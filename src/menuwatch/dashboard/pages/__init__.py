"""The screens: every module with a `router` is registered (`web.routing.include_package`)."""
