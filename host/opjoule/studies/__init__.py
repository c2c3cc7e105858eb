"""What is measured: each kind of study yields phases with roles; measuring/ knows the roles alone.

The jobs of studies are in studies/ at the root of the repository.
"""
