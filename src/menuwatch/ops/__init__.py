"""Running an installation: doctor, health, metrics, maintenance, export, backup and the import from the legacy system."""
