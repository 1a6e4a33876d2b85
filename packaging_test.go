package podstead_test

import (
	"os/exec"
	"strings"
	"testing"
)

// TestServiceUnit checks that the unit runs a daemon that systemd waits for, that it can be enabled, and that the how-to page shows it.
func TestServiceUnit(t *testing.T) {
	var lines []string // without comments
	for line := range strings.Lines(readFile(t, "packaging/podstead.service")) {
		if !strings.HasPrefix(line, "#") {
			lines = append(lines, line)
		}
	}
	unit := strings.Join(lines, "")
	for _, line := range []string{"Type=notify\n", "ExecStart=/usr/local/bin/podstead daemon\n", "ExecReload=/bin/kill -HUP $MAINPID\n", "Restart=on-failure\n", "MemoryMax=1G\n", "WantedBy=multi-user.target\n"} {
		if !strings.Contains(unit, line) {
			t.Errorf("the unit has no line %q", line)
		}
	}
	if page := readFile(t, "docs/howto/run-pods-at-boot.md"); !strings.Contains(page, "```ini\n"+unit+"```\n") {
		t.Errorf("docs/howto/run-pods-at-boot.md does not show packaging/podstead.service without its comments:\n%s", unit)
	}
}

// TestInstallUnit checks that make install writes the unit with the path of the program.
func TestInstallUnit(t *testing.T) {
	out, err := exec.CommandContext(t.Context(), "make", "-n", "install", "PREFIX=/usr", "DESTDIR=/image").CombinedOutput()
	if err != nil {
		t.Fatalf("make -n install: %v\n%s", err, out)
	}
	want := "sed 's|/usr/local/bin/|/usr/bin/|' packaging/podstead.service >/image/usr/lib/systemd/system/podstead.service\n"
	if !strings.Contains(string(out), want) {
		t.Errorf("make install does not run %s\n%s", want, out)
	}
}
