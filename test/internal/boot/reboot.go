package boot

// Boots tests a reboot, and power cuts while pods start, one at each of these moments; see [Moments]. It needs the pods of
// [Host.Service]. The archive of their image does not exist any more: a boot needs no network, no registry and no archive.
func (h *Host) Boots(moments ...Moment) {
	h.Helper()
	h.Sh("rm " + archive + "; sync")
	before := h.Look()
	h.Reboot()
	h.start()
	h.rebooted("a reboot", before, 1)

	for _, m := range moments {
		before = h.Look()
		h.Cut() // with pods that are running
		h.Eventually(m.name, m.script)
		h.Cut() // in the middle of the start
		h.start()
		h.rebooted("a power cut when "+m.name, before, 1)
	}
}

// Moment is a moment of a boot.
type Moment struct{ name, script string }

// Moments are when the power is cut, in the order in which they come.
var Moments = []Moment{
	{"the daemon starts", `[ "$(` + pid + `)" != 0 ]`},
	{"the first sandbox starts", `ls /run/podstead/ns/*`},
	{"the first container runs", `grep web ` + data + `/begun`},
}

// rebooted checks that the pods are the same as before, and that their containers were restarted.
func (h *Host) rebooted(what string, before map[string]Seen, restarts int) {
	h.Helper()
	after := h.Look()
	for _, pod := range []string{"web", "late", "none"} {
		was, is := before[pod], after[pod]
		more := is.Restarts - was.Restarts
		if is.UID != was.UID || pod != "none" && (more < restarts || is.ID == was.ID) {
			h.Errorf("pod %s after %s is %+v, was %+v", pod, what, is, was)
		}
		h.Logf("pod %s after %s has %d more restarts", pod, what, more)
	}
	h.Sh("podstead why web | tee /tmp/why; grep 'Host has been rebooted' /tmp/why")
}
