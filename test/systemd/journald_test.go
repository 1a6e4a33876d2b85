//go:build e2e

package systemd_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/podstead/podstead/test/internal/installed"
	"github.com/podstead/podstead/test/systemd"
)

const (
	// linesPod writes all kinds of lines, and exits.
	linesPod = `
restartPolicy = "Never"
imageArchives = ["/var/lib/images/busybox.tar"]
[[containers]]
name = "c"
image = "localhost/podstead/busybox:1"
command = ["sh", "-c", '''
echo plain
printf 'bin\001\377\033[1mary\n'
printf '%s\n' "$(printf '%020000d' 7)"
sleep 0.2; echo problem >&2; sleep 0.2
echo
echo last
''']
`
	// ticksPod counts, for a reader that looks for gaps.
	ticksPod = `
terminationGracePeriodSeconds = 0
imageArchives = ["/var/lib/images/busybox.tar"]
[[containers]]
name = "c"
image = "localhost/podstead/busybox:1"
command = ["sh", "-c", "i=0; while :; do i=$((i + 1)); echo tick $i; sleep 0.05; done"]
`
	// floodPod writes more than waits for journald, and then runs a command.
	floodPod = `
restartPolicy = "Never"
terminationGracePeriodSeconds = 1
imageArchives = ["/var/lib/images/busybox.tar"]
[[containers]]
name = "c"
image = "localhost/podstead/busybox:1"
command = ["sh", "-c", "i=0; while [ $i -lt 30000 ]; do i=$((i + 1)); echo $i; done; echo written; %s"]
`
)

// journal is a machine whose containers write to journald.
type journal struct {
	*installed.Host
	machine *systemd.Machine
}

// TestJournald runs the log driver journald, and the events in the journal, on a real journald.
func TestJournald(t *testing.T) {
	m := machine(t)
	j := &journal{install(t, m), m}
	j.write("/etc/podstead/podstead.toml", "[containerLog]\ndriver = \"journald\"\n")
	j.write("/etc/systemd/journald.conf", "[Journal]\nRateLimitIntervalSec=0\n")
	j.Sh("journalctl --update-catalog; systemctl restart systemd-journald; systemctl restart podstead")

	j.fields()
	j.events()
	j.daemonKilled()
	j.journaldRestarts()
	j.journaldHangs()
	j.page()
}

func (j *journal) write(name, text string) {
	j.Helper()
	if err := os.WriteFile(filepath.Join(j.machine.Root(), name), []byte(text), 0o644); err != nil {
		j.Fatal(err)
	}
}

// apply applies a pod, and waits for its phase.
func (j *journal) apply(name, pod, phase string) {
	j.Helper()
	j.write("/root/"+name+".toml", pod)
	j.Sh(fmt.Sprintf("podstead apply /root/%[1]s.toml; podstead wait --for=phase=%[2]s pod/%[1]s --timeout 60s", name, phase))
}

// journalctl returns entries of the journal, after they were written.
func (j *journal) journalctl(args string) string {
	j.Helper()
	return j.Sh("journalctl --sync; journalctl --no-pager " + args)
}

// fields checks the fields of lines, and that podstead logs shows the same lines.
func (j *journal) fields() {
	j.Helper()
	j.apply("lines", linesPod, "Succeeded")
	show := func(field string) string {
		return strings.TrimSpace(j.journalctl("CONTAINER_NAME=lines-c -o cat --output-fields=" + field))
	}
	if got := j.journalctl("-o cat CONTAINER_NAME=lines-c"); !strings.HasPrefix(got, "plain\n") || !strings.Contains(got, "problem\n") ||
		!strings.HasSuffix(got, "last\n") {
		j.Errorf("the journal has %.200q", got)
	}
	all := j.journalctl("-a -o json CONTAINER_NAME=lines-c")
	entries := strings.Split(strings.TrimSpace(all), "\n")
	if len(entries) != 7 { // the long line has two parts
		j.Fatalf("%d entries\n%s", len(entries), all)
	}
	for i, e := range entries {
		for _, want := range []string{
			`"SYSLOG_IDENTIFIER":"lines-c"`, `"CONTAINER_TAG":"lines-c"`, `"IMAGE_NAME":"localhost/podstead/busybox:1"`, `"POD":"lines"`,
			`"CONTAINER":"c"`, `"CONTAINER_ID":"`,
			`"CONTAINER_ID_FULL":"`, `"PODSTEAD_RESTARTS":"0"`, `"OBJECT_SYSTEMD_UNIT":"podstead@lines.service"`,
		} {
			compact := strings.ReplaceAll(e, `" : "`, `":"`)
			if !strings.Contains(compact, want) {
				j.Errorf("entry %d has no %s: %.2000s", i, want, e)
			}
		}
	}
	long := "0000000000000000007"
	for _, check := range []struct{ matches, want string }{
		{"PRIORITY=3", "problem\n"},
		{"CONTAINER_PARTIAL_MESSAGE=true", strings.Repeat("0", 16<<10) + "\n"},
		{"PODSTEAD_STREAM=stdout -n 1", "last\n"},
	} {
		if got := j.journalctl("-o cat POD=lines CONTAINER=c " + check.matches); got != check.want {
			j.Errorf("%s: got %.100q of %d bytes", check.matches, got, len(got))
		}
	}
	if got := j.Sh(`journalctl -o export CONTAINER_NAME=lines-c | grep -aqF "$(printf 'bin\001\377\033[1mary')" && ` +
		`echo found`); got != "found\n" {
		j.Error("the journal does not have the binary line")
	}
	if got := j.Sh("podstead logs lines | tail -n 4"); !strings.HasSuffix(strings.SplitAfter(got, "\n")[0], long+"\n") ||
		!strings.HasSuffix(got, "last\n") {
		j.Errorf("podstead logs: %.100q ... %q", got, got[max(0, len(got)-100):])
	}
	if got := j.Sh("podstead logs lines --tail 1 --timestamps; podstead logs lines --since 1h | wc -l"); !strings.Contains(got,
		"Z last\n6\n") {
		j.Errorf("podstead logs with flags: %q", got)
	}
	if got := j.Sh("ls /var/log/podstead || true"); strings.Contains(got, "lines_") {
		j.Errorf("the log is on the disk: %s", got)
	}
	if id := show("CONTAINER_ID"); id == "" {
		j.Error("no CONTAINER_ID")
	}
}

// events checks the fields and the texts of events.
func (j *journal) events() {
	j.Helper()
	got := j.journalctl("-o cat POD=lines REASON=Exited PODSTEAD_EVENT=ContainerSucceeded")
	if got != "lines/c: Container exited with code 0\n" {
		j.Errorf("got %q", got)
	}
	got = j.journalctl("-x -u podstead POD=lines REASON=Exited")
	if !strings.Contains(got, "Subject: Container c of pod lines exited") || !strings.Contains(got, "podstead why lines explains") {
		j.Errorf("journalctl -x shows\n%s", got)
	}
	if n := strings.TrimSpace(j.Sh("journalctl -u podstead -o cat | grep -c 'lines/c: Container exited' ; journalctl -u podstead -o cat " +
		"| grep -c 'msg=\"Container exited' || true")); n != "1\n0" {
		j.Errorf("the event is %q times in the journal, with fields and as text", n)
	}
}

const (
	// countTicks counts the lines of the pod in the journal, countLog those of its log.
	countTicks = "journalctl --sync; journalctl -o cat CONTAINER_NAME=ticks-c | wc -l"
	countLog   = "podstead logs ticks | wc -l"
)

// grows waits until the output of a script, a number, has grown by some.
func (j *journal) grows(what, script string) {
	j.Helper()
	n := strings.TrimSpace(j.Sh(script))
	j.Eventually(what, "[ $("+script+") -gt $(("+n+" + 10)) ]")
}

// gapless checks that ticks begin with the first one, and that none is missing.
func (j *journal) gapless(what, text string) (ticks int) {
	j.Helper()
	for line := range strings.Lines(text) {
		if ticks++; line != fmt.Sprintf("tick %d\n", ticks) {
			j.Fatalf("%s: line %d is %q", what, ticks, line)
		}
	}
	return ticks
}

// ticks checks that the journal has all ticks that the log has.
func (j *journal) ticks() {
	j.Helper()
	n := j.gapless("log", j.Sh("podstead logs ticks"))
	j.Eventually("all lines of the log in the journal", fmt.Sprintf("[ $(%s) -ge %d ]", countTicks, n))
	j.gapless("journal", j.journalctl("-o cat CONTAINER_NAME=ticks-c"))
}

// daemonKilled: the journal gets all lines while the daemon is down, and a follower shows them.
func (j *journal) daemonKilled() {
	j.Helper()
	j.apply("ticks", ticksPod, "Running")
	j.Sh("systemd-run --quiet --unit=follower --setenv=HOME=/root sh -c 'exec podstead logs ticks -f >/root/followed'")
	j.Eventually("lines for the follower", "grep -q 'tick 5' /root/followed")
	j.Sh("systemctl kill --signal=KILL --kill-whom=main podstead; systemctl stop podstead; ! systemctl is-active --quiet podstead")
	j.grows("lines without a daemon", countTicks)
	j.Sh("systemctl start podstead")
	j.ticks()
	n := strings.TrimSpace(j.Sh(countLog))
	j.Eventually("all lines for the follower", "[ $(wc -l </root/followed) -gt "+n+" ]")
	j.Sh("systemctl stop follower")
	j.gapless("follower", j.Sh("head -n "+n+" /root/followed"))
}

// journaldRestarts: nothing is lost when journald restarts. Without its sockets containers run on, and their lines arrive again afterwards.
func (j *journal) journaldRestarts() {
	j.Helper()
	for range 3 {
		j.Sh("systemctl restart systemd-journald")
		j.grows("lines after a restart of journald", countTicks)
	}
	j.ticks()
	const sockets = "systemd-journald.socket systemd-journald-dev-log.socket"
	const daemon = "systemctl show --value --property=MainPID podstead"
	pid := j.Sh(daemon)
	j.Sh("systemctl stop systemd-journald systemd-journald-audit.socket " + sockets +
		" 2>/dev/null; ! systemctl is-active --quiet systemd-journald")
	j.grows("lines without journald", countLog)
	n := strings.TrimSpace(j.Sh(countLog))
	j.Sh("systemctl start " + sockets + " systemd-journald")
	for range 2 { // a line that waited for journald, and a later one
		j.Eventually("line "+n, "journalctl --sync; journalctl -o cat CONTAINER_NAME=ticks-c | grep -qx 'tick "+n+"'")
		n = strings.TrimSpace(j.Sh(countLog))
	}
	j.gapless("log", j.Sh("podstead logs ticks"))
	if now := j.Sh("podstead apply /root/ticks.toml >&2; " + daemon); !strings.HasSuffix(now, pid) {
		j.Errorf("the daemon was restarted: PID %q, now %q", pid, now)
	}
}

// journaldHangs: a container that writes more than fits is not blocked, and its journal says how much it misses.
func (j *journal) journaldHangs() {
	j.Helper()
	j.flood("burst", "Succeeded", "exit 0", "true")
	j.flood("flood", "Running", "exec sleep 600", `for try in $(seq 600); do
	journalctl --sync
	journalctl -o cat CONTAINER_NAME=flood-c | grep -q 'podstead: [0-9]* lines dropped' && exit 0
	sleep 0.1
done
exit 1`)
}

// flood writes more lines than wait for a journald that hangs. The container then runs a command, and the test runs wait. Each line is in
// the journal, or counted there or, if journald has not accepted the number before the container exited, in the log.
func (j *journal) flood(pod, phase, command, wait string) {
	j.Helper()
	j.Sh("systemctl kill --signal=STOP systemd-journald")
	j.apply(pod, fmt.Sprintf(floodPod, command), phase)
	j.Eventually("the end of the flood", "podstead logs "+pod+" --tail 5 | grep -q '^written$'")
	j.Sh("systemctl kill --signal=CONT systemd-journald")
	j.Sh(wait)
	j.Sh("podstead stop " + pod)
	sum := 0
	for what, script := range map[string]string{
		"received": `journalctl --sync; journalctl -o cat CONTAINER_NAME=` + pod + `-c | grep -cv podstead: || true`,
		"dropped":  `journalctl -o export CONTAINER_NAME=` + pod + `-c | sed -n 's/^PODSTEAD_DROPPED=//p'`,
		"not sent": `podstead logs ` + pod + ` | sed -n 's/^podstead: \([0-9]*\) lines of the log are not in the journal.*/\1/p'`,
	} {
		out := j.Sh(script)
		j.Logf("%s %s: %q", pod, what, out)
		for field := range strings.FieldsSeq(out) {
			n := 0
			if _, err := fmt.Sscan(field, &n); err != nil {
				j.Fatalf("%s: %v: %q", what, err, field)
			}
			sum += n
		}
	}
	if sum != 30001 {
		j.Errorf("%d of 30001 lines are in the journal or reported", sum)
	}
}
