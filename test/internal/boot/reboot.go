package boot

// Boots tests a reboot, and power cuts while pods start, one at each of these moments; see [Moments]. It needs the pods of
// [Host.Service]. The archive of their image does not exist any more: a boot needs no network, no registry and no archive.
func (h *Host) Boots(moments ...Moment) {
	h.Helper()
	h.Sh("rm " + archive + "; sync")
	before := h.Look()
	h.Reboot()
	h.start()
	h.rebooted("a reboot", before, 1, 1)

	for _, m := range moments {
		before = h.Look()
		h.Cut() // with pods that are running
		h.Eventually(m.name, m.script)
		h.Cut() // in the middle of the start
		h.start()
		h.rebooted("a power cut when "+m.name, before, m.starts, 2)
	}
}

// Moment is a moment of a boot.
type Moment struct {
	name, script string
	starts       int // how often the container of web has been started at least since before the boot, when this boot and the next one are complete
}

// Moments are when the power is cut, in the order in which they come.
var Moments = []Moment{
	{"the daemon starts", `[ "$(` + pid + `)" != 0 ]`, 1},
	{"the first sandbox starts", `ls /run/podstead/ns/*`, 1},
	{"the first container runs", `grep web ` + data + `/begun`, 2},
}

// rebooted checks that the pods are the same as before, and how often their containers were restarted: late once, web between least and most
// times, none never.
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
