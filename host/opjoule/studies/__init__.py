"""What is measured: each kind of study yields phases with roles; measuring/ knows the roles alone. Jobs are in studies/ at the root."""
