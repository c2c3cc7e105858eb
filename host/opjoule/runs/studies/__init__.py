"""The kinds of study. Each yields phases with roles; measuring/ knows only the roles.

The jobs of studies are in studies/ at the root of the repository.
"""
