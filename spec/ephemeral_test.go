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
		want       []string // the problems; none: it is accepted
	}{
		{name: "all that it needs", text: "name = \"d\"\nimage = \"b:1\"\ncommand = [\"sh\"]\nenv.A = \"1\"\nvolumeMounts.data = \"/data\"\n"},
		{"nothing", "", []string{"d.toml:1:1: name: is required", "d.toml:1:1: image: is required"}},
		{"no container", "name = \"d\"\nimage = \"b\"\nimages = \"c\"\n", []string{"d.toml:3:1: images: unknown key"}},
		{"no TOML", "name =\n", []string{"d.toml:1:7: is not TOML: unexpected character U+000A at start of value"}},
		{"a name that is none", "name = \"A\"\nimage = \"b\"\n", []string{`d.toml:1:8: name: "A": a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character`}},
		{"a volume of another pod", "name = \"d\"\nimage = \"b\"\nvolumeMounts.logs = \"/l\"\n", []string{`d.toml:3:14: volumeMounts.logs: there is no volume "logs"`}},
		{"what is not built yet", "name = \"d\"\nimage = \"b\"\ntty = true\n", []string{"d.toml:3:1: tty: not supported yet"}},
		{
			"what others would depend on", "name = \"d\"\nimage = \"b\"\nrestartPolicy = \"Always\"\nports = [{ containerPort = 1 }]\nlifecycle = { preStop = { sleep = { seconds = 1 } } }\n" +
				"livenessProbe = { exec = { command = [\"true\"] } }\n", []string{
				"d.toml:3:17: restartPolicy: an ephemeral container cannot have this",
				"d.toml:4:1: ports: an ephemeral container cannot have this",
				"d.toml:5:13: lifecycle: an ephemeral container cannot have this",
				"d.toml:6:17: livenessProbe: an ephemeral container cannot have this",
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
			case c != nil && (c.Env[0].Name != "A" || c.VolumeMounts[0].MountPath != "/data" || c.Hash == "" || c.TerminationMessagePath == ""):
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
