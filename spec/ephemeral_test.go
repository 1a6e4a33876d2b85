package spec

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParseEphemeral(t *testing.T) {
	pod, problems := Parse("/pods/web.toml", []byte(`name = "web"
volumes = [{ name = "data", emptyDir = {} }]
[[containers]]
name = "app"
image = "a:1"
`))
	if pod == nil {
		t.Fatal(problems)
	}
	for _, test := range []struct {
		name, text string
		want       []string // problems; nil if the file is valid
	}{
		{
			name: "valid",
			text: "name = \"d\"\nimage = \"b:1\"\ncommand = [\"sh\"]\nenv.A = \"1\"\nvolumeMounts.data = \"/data\"\nstdin = " +
				"true\nstdinOnce = true\ntty = true\n",
		},
		{
			name: "empty fields, as clients of Kubernetes write them",
			text: "name = \"d\"\nimage = \"b:1\"\nenv.A = \"1\"\nvolumeMounts.data = \"/data\"\n" +
				"stdin = true\nstdinOnce = true\ntty = true\nports = []\nresources = {}\n",
		},
		{"empty file", "", []string{"d.toml:1:1: name: Required value", "d.toml:1:1: image: Required value"}},
		{"unknown field", "name = \"d\"\nimage = \"b\"\nimages = \"c\"\n", []string{"d.toml:3:1: images: unknown field"}},
		{"invalid TOML", "name =\n", []string{"d.toml:1:7: invalid TOML: unexpected character U+000A at start of value"}},
		{
			"invalid name", "name = \"A\"\nimage = \"b\"\n",
			[]string{
				`d.toml:1:8: name: Invalid value: "A": a lowercase RFC 1123 label must consist of lower case alphanumeric characters or ` +
					`'-', and must start and end with an alphanumeric character`,
			},
		},
		{
			"volume not in the pod", "name = \"d\"\nimage = \"b\"\nvolumeMounts.logs = \"/l\"\n",
			[]string{`d.toml:3:14: volumeMounts.logs: Not found: volume "logs"`},
		},
		{
			"unknown target", "name = \"d\"\nimage = \"b\"\ntargetContainerName = \"nope\"\n",
			[]string{`d.toml:3:23: targetContainerName: Not found: "nope"`},
		},
		{
			"fields of app containers",
			"name = \"d\"\nimage = \"b\"\nrestartPolicy = \"Always\"\nports = [{ containerPort = 1 }]\nlifecycle = { preStop = { sleep = " +
				"{ seconds = 1 } } }\n" +
				"livenessProbe = { exec = { command = [\"true\"] } }\n",
			[]string{
				"d.toml:3:17: restartPolicy: Forbidden: cannot be set for an Ephemeral Container",
				"d.toml:4:1: ports: Forbidden: cannot be set for an Ephemeral Container",
				"d.toml:5:13: lifecycle: Forbidden: cannot be set for an Ephemeral Container",
				"d.toml:6:17: livenessProbe: Forbidden: cannot be set for an Ephemeral Container",
			},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			c, problems := ParseEphemeral("d.toml", []byte(test.text), pod)
			var got []string
			for _, p := range problems {
				got = append(got, p.String())
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("problems (-want +got):\n%s", diff)
			}
			switch {
			case (c != nil) != (test.want == nil):
				t.Errorf("container %+v", c)
			case c != nil &&
				(c.Env[0].Name != "A" || c.VolumeMounts[0].MountPath != "/data" || c.Hash == "" || c.TerminationMessagePath == "" ||
					!c.Stdin || !c.StdinOnce || !c.TTY):
				t.Errorf("container %+v", c)
			}
		})
	}
	if len(pod.EphemeralContainers) > 0 {
		t.Errorf("the pod has %+v now", pod.EphemeralContainers)
	}
	if c, problems := ParseEphemeral("d.toml", make([]byte, maxFileBytes+1), pod); c != nil || len(problems) != 1 {
		t.Errorf("a file that is too large: %v, %v", c, problems)
	}
}

// TestTargetContainer expects that a target remains only where its processes are not visible anyway.
func TestTargetContainer(t *testing.T) {
	for _, test := range []struct {
		pod, target string
		accepted    bool
		want        string
	}{
		{"", `targetContainerName = ""`, true, ""},
		{"", `targetContainerName = "app"`, true, "app"},
		{"", `targetContainerName = "nope"`, false, ""},
		{"shareProcessNamespace = true", `targetContainerName = "app"`, true, ""},
		{"shareProcessNamespace = true", `targetContainerName = "init"`, true, ""},
		{"shareProcessNamespace = true", `targetContainerName = "nope"`, false, ""},
		{"shareProcessNamespace = true", `targetContainerName = 1`, false, ""},
		{"hostPID = true", `targetContainerName = "app"`, true, ""},
	} {
		pod, problems := Parse("/pods/web.toml",
			[]byte(test.pod+"\n[[initContainers]]\nname = \"init\"\nimage = \"a:1\"\n[[containers]]\nname = \"app\"\nimage = \"a:1\"\n"))
		if pod == nil {
			t.Fatal(problems)
		}
		c, problems := ParseEphemeral("d.toml", []byte("name = \"d\"\nimage = \"b:1\"\n"+test.target+"\n"), pod)
		if (c != nil) != test.accepted || test.accepted && len(problems) > 0 {
			t.Errorf("%q, %s: %v, want accepted: %v", test.pod, test.target, problems, test.accepted)
		}
		if c != nil && c.TargetContainerName != test.want {
			t.Errorf("%q, %s: target %q, want %q", test.pod, test.target, c.TargetContainerName, test.want)
		}
	}
}
