package api

// UnitOf returns the systemd unit that starts a pod of units.d.
func UnitOf(pod string) string { return "podstead@" + pod + ".service" }
