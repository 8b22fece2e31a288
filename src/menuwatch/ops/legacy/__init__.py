"""Switch from the legacy system: its schedules and jobs are disabled, and its data and files are taken over."""
