"""The Prefect layer: the only code that imports Prefect. Imported and installed as `ragscore.flows`."""
