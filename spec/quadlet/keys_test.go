package quadlet

import (
	"flag"
	"os"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write docs/reference/quadlet.md")

// deprecated are keys of Podman that its page does not list any more.
var deprecated = []string{
	"Container.RemapGid", "Container.RemapUid", "Container.RemapUidSize", "Container.RemapUsers", "Container.VolatileTmp",
	"Container.DNSOption", "Kube.LogOpt", "Kube.RemapGid", "Kube.RemapUid", "Kube.RemapUidSize", "Kube.RemapUsers",
}

// TestKeysAreComplete checks that each key of podman-systemd.unit(5) has a row, and each row of a section of Quadlet is one of them.
func TestKeysAreComplete(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("testdata/keys.txt")
	if err != nil {
		t.Fatal(err)
	}
	documented := map[string]bool{}
	for line := range strings.Lines(string(text)) {
		if line[0] == '#' {
			continue
		}
		name := strings.TrimSpace(line)
		documented[name] = true
		section, key, _ := strings.Cut(name, ".")
		if rowOf(section, key) == nil {
			t.Errorf("%s has no row", name)
		}
	}
	seen := map[string]bool{}
	for _, r := range rows {
		name := r.section + "." + r.key
		if (isUnitSection(r.section) || r.section == "Quadlet") && !documented[name] && !slices.Contains(deprecated, name) {
			t.Errorf("%s is no key of Podman", name)
		}
		if seen[name] {
			t.Errorf("%s has two rows", name)
		}
		seen[name] = true
		if r.text == "" || (r.verdict == taken) != (r.take != nil) {
			t.Errorf("row %+v", r)
		}
	}
	for name, o := range options {
		if o.key != "" && rowOf("Container", o.key) == nil {
			t.Errorf("option --%s: Container.%s has no row", name, o.key)
		}
	}
}

const page = "../../docs/reference/quadlet.md"

// TestReference compares the reference page with the table. With -update it writes the page.
func TestReference(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	b.WriteString("# Keys of Quadlet\n\n```console\n$ podstead convert web.container data.volume --output-dir .\n...\nweb.toml\n```\n\n" +
		"This page lists what `podstead convert` does with each key of a unit of Quadlet. It is generated from the table in\n" +
		"`spec/quadlet/keys.go`. [Coming from Quadlet](../howto/coming-from-quadlet.md) has an example of a whole application.\n\n" +
		"| | |\n| --- | --- |\n| taken | the second column has the fields of the pod file |\n" +
		"| ignored | a warning: what the pod does stays the same |\n" +
		"| lost | an error, with `--allow-loss` a warning: the pod behaves differently without the key |\n" +
		"| refused | an error with a hint |\n\n" +
		"Keys of `[Unit]` and `[Service]` that are not listed are lost. Sections that begin with `X-` are not read.\n")
	section := ""
	for _, r := range rows {
		if r.section != section {
			section = r.section
			b.WriteString("\n## [" + section + "]\n\n| key | | fields, or why |\n| --- | --- | --- |\n")
		}
		text := r.text
		if r.harmless != "" {
			text += "; `" + r.harmless + "` loses nothing"
		}
		if r.hint != "" {
			text += ". " + strings.ToUpper(r.hint[:1]) + r.hint[1:]
		}
		b.WriteString("| `" + r.key + "` | " + string(r.verdict) + " | " + text + " |\n")
	}
	b.WriteString("\n## PodmanArgs\n\n" +
		"These options of `podman run` and `podman pod create` are taken as the key that means the same. Others are lost.\n\n" +
		"| option | key |\n| --- | --- |\n")
	var names []string
	for name := range options {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		key := options[name].key
		switch {
		case key != "":
			key = "`" + key + "`"
		case options[name].take == nil:
			key = "none: it has no effect here"
		default:
			key = own[name]
		}
		b.WriteString("| `--" + name + "` | " + key + " |\n")
	}
	want := b.String()
	if *update {
		if err := os.WriteFile(page, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != want {
		t.Errorf("%s is not up to date: run go test ./spec/quadlet -run TestReference -update", page)
	}
}

// own are the fields of options that have no key.
var own = map[string]string{
	"cpus": "none: resources.limits.cpu", "interactive": "none: stdin", "ipc": "none: hostIPC",
	"memory-reservation": "none: resources.requests.memory", "pid": "none: hostPID", "privileged": "none: securityContext.privileged",
	"security-opt": "as `NoNewPrivileges`, `SeccompProfile`, `AppArmor`", "tty": "none: tty",
}
