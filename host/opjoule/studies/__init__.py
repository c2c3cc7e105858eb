"""What is measured: each study is one folder that yields phases with roles; measurement/ knows the roles alone."""
