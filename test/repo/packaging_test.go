package repo_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
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
	for _, line := range []string{
		"Type=notify\n", "ExecStart=/usr/local/bin/podstead daemon\n", "ExecReload=/bin/kill -HUP $MAINPID\n", "Restart=on-failure\n",
		"MemoryMax=1G\n", "KillMode=process\n", "Delegate=yes\n", "WantedBy=multi-user.target\n",
	} {
		if !strings.Contains(unit, line) {
			t.Errorf("the unit has no line %q", line)
		}
	}
	if page := readFile(t, "docs/howto/run-pods-at-boot.md"); !strings.Contains(page, "```ini\n"+unit+"```\n") {
		t.Errorf("docs/howto/run-pods-at-boot.md does not show packaging/podstead.service without its comments:\n%s", unit)
	}
}

// TestInstallUnit checks that make install writes the unit with the path of the program, and the message catalog.
func TestInstallUnit(t *testing.T) {
	out, err := exec.CommandContext(t.Context(), "make", "-n", "install", "PREFIX=/usr", "DESTDIR=/image").CombinedOutput()
	if err != nil {
		t.Fatalf("make -n install: %v\n%s", err, out)
	}
	for _, want := range []string{
		"sed 's|/usr/local/bin/|/usr/bin/|' packaging/podstead.service >/image/usr/lib/systemd/system/podstead.service\n",
		"packaging/podstead.catalog /image/usr/lib/systemd/catalog/podstead.catalog\n",
		"packaging/podstead@.service >/image/usr/lib/systemd/system/podstead@.service\n",
		"packaging/podstead-user.service >/image/usr/lib/systemd/user/podstead.service\n",
		"ln -sf /usr/bin/podstead /image/usr/lib/systemd/system-generators/podstead-generator\n",
		"sed 's|/usr/local/bin/|/usr/bin/|' packaging/podstead.socket >/image/usr/lib/systemd/system/podstead.socket\n",
		"install -m 0644 packaging/podstead-ro.socket packaging/podstead.slice /image/usr/lib/systemd/system/\n",
		"install -D -m 0644 packaging/podstead-pods.slice.conf /image/usr/lib/systemd/system/podstead-.slice.d/10-podstead.conf\n",
		"install -D -m 0644 packaging/podstead.sysusers /image/usr/lib/sysusers.d/podstead.conf\n",
		"install -D -m 0644 packaging/podstead.tmpfiles /image/usr/lib/tmpfiles.d/podstead.conf\n",
	} {
		if !strings.Contains(string(out), want) {
			t.Errorf("make install does not run %s\n%s", want, out)
		}
	}
}

// TestRemovalMessages checks that the removal of the package says what a purge deletes, and that a purge names the persistent volumes
// before it deletes them. The script runs with other directories, and with programs that only print what they were to do.
func TestRemovalMessages(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
		return path
	}
	write("var/lib/podstead/volumes/pgdata/base", "")
	write("var/lib/podstead/volumes/uploads/cat.jpg", "")
	write("bin/rm", "#!/bin/sh\necho rm $*\n")
	write("bin/getent", "#!/bin/sh\nexit 1\n")
	script := write("postremove",
		regexp.MustCompile(`/(etc|var|run)/`).ReplaceAllString(readFile(t, "packaging/scripts/postremove"), dir+"/$1/"))
	run := func(action string) string {
		cmd := exec.CommandContext(t.Context(), "sh", script, action)
		cmd.Env = append(os.Environ(), "PATH="+filepath.Join(dir, "bin")+":"+os.Getenv("PATH"))
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Errorf("postremove %s: %v", action, err)
		}
		return strings.ReplaceAll(string(out), dir, "")
	}
	const kept = `podstead: pods, volumes and images are kept in /etc/podstead and /var/lib/podstead, until the package is purged:
podstead: a purge deletes them, persistent volumes and their data too
`
	if got := run("remove"); got != kept {
		t.Errorf("remove prints:\n%s", got)
	}
	const deleting = `podstead: deleting all pods, images, logs and settings in /etc/podstead, /var/lib/podstead and /var/log/podstead
podstead: deleting the persistent volumes and their data: pgdata uploads
`
	got := run("purge")
	before, rest, found := strings.Cut(got, deleting)
	if !found || before != "" || !strings.Contains(rest, "rm -rf --one-file-system /var/lib/podstead ") {
		t.Errorf("purge prints:\n%s", got)
	}
	page := readFile(t, "docs/howto/install-the-packages.md")
	if !strings.Contains(page, kept+"$ apt-get purge") || !strings.Contains(page, deleting) {
		t.Error("docs/howto/install-the-packages.md does not show the messages")
	}
	if err := os.RemoveAll(filepath.Join(dir, "var/lib/podstead/volumes")); err != nil {
		t.Fatal(err)
	}
	if got := run("purge"); strings.Contains(got, "persistent volumes") {
		t.Errorf("purge without persistent volumes prints:\n%s", got)
	}
}

// TestHardeningTable checks that the unit sets none of the options of which docs/design/system-service.md says so. A test of the installed
// service compares the table with systemd-analyze.
func TestHardeningTable(t *testing.T) {
	_, table, _ := strings.Cut(readFile(t, "docs/design/system-service.md"), "| option | why it is not set |\n")
	unit := readFile(t, "packaging/podstead.service")
	count := 0
	for line := range strings.Lines(table) {
		cells := strings.Split(line, "|")
		if len(cells) < 3 {
			break
		}
		for _, option := range regexp.MustCompile("`([A-Za-z]+)`").FindAllStringSubmatch(cells[1], -1) {
			count++
			if option[1] != "Delegate" && strings.Contains(unit, "\n"+option[1]+"=") {
				t.Errorf("the unit sets %s, and the table says that it does not", option[1])
			}
		}
	}
	if count == 0 {
		t.Error("found no options in the table")
	}
}

// TestNoEarlyExit checks that no script with pipefail writes to grep -q, which exits at the first match: such a check fails if the writer
// has not written everything by then.
func TestNoEarlyExit(t *testing.T) {
	early := regexp.MustCompile(`[^|]\|\s*grep -\w*[qm]`)
	for _, file := range []string{".ci/deps", ".ci/demo", ".ci/run", "packaging/build", "packaging/check", "test/cluster/build"} {
		for line := range strings.Lines(readFile(t, file)) {
			if early.MatchString(line) {
				t.Errorf("%s: %s", file, line)
			}
		}
	}
}
