"""The networks that conjoint attention is compared with, composed from PyG's layers."""
