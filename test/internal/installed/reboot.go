package installed

// Boot tests a boot after a [Host.Reboot] or a [Host.Cut]. It needs the pods of [Host.Service]. The archive of their image does not exist
// then: a boot needs no network, no registry and no archive. With a moment, the power is cut at that moment of the boot, and the next boot
// is tested.
func (h *Host) Boot(turn func(), m *Moment) {
	h.Helper()
	h.Sh("mv " + archive + " " + archive + ".away; sync")
	before := h.Look()
	turn()
	what, least, most := "a boot", 1, 1
	if m != nil {
		h.Eventually(m.name, m.script)
		h.Cut()
		what, least, most = "a power cut when "+m.name, m.starts, 2
	}
	h.start()
	h.rebooted(what, before, least, most)
	h.Sh("mv " + archive + ".away " + archive + "; sync")
}

// Moment is a moment of a boot.
type Moment struct {
	name, script string
	// how often the container of web has been started at least since before the boot, when this boot and the next one are complete
	starts int
}

// Moments are when the power is cut, in the order in which they come.
var Moments = []Moment{
	{"the daemon starts", `[ "$(` + pid + `)" != 0 ]`, 1},
	{"the first sandbox starts", `ls /run/podstead/ns/*`, 1},
	{"the first container runs", `grep web ` + data + `/begun`, 2},
}

// rebooted checks that the pods are the same as before, and how often their containers were restarted: late once, web between least and
// most times, none never.
func (h *Host) rebooted(what string, before map[string]Seen, least, most int) {
	h.Helper()
	after := h.Look()
	for pod, limits := range map[string][2]int{"web": {least, most}, "late": {1, 1}, "none": {0, 0}} {
		was, is := before[pod], after[pod]
		restarts := is.Restarts - was.Restarts
		if is.UID != was.UID || restarts < limits[0] || restarts > limits[1] || restarts > 0 && is.ID == was.ID {
			h.Errorf("pod %s after %s is %+v, was %+v, want %v restarts", pod, what, is, was, limits)
		}
	}
	h.Sh("podstead why web > /tmp/why; grep 'Host has been rebooted' /tmp/why || { cat /tmp/why; false; }")
}
