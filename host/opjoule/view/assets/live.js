function follow() {}
