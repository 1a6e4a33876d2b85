package main

import (
	"strings"
	"testing"
)

// TestCommandHints checks that no hint replaces a command, a subcommand or a flag.
func TestCommandHints(t *testing.T) {
	for parent, hints := range map[string][]commandHint{
		"": commandHints, "create": createHints, "image": imageHints, "volume": volumeHints, "system": systemHints,
	} {
		cmd, _, err := (&app{}).root().Find(strings.Fields(parent))
		if err != nil {
			t.Fatal(err)
		}
		for _, h := range hints {
			for _, name := range h.names {
				if _, exists := childOf(cmd, name); exists {
					t.Errorf("%s %s is a command and has a hint", parent, name)
				}
				if found, _, err := cmd.Find([]string{name}); err != nil || found.Name() != h.names[0] && found.Name() != name {
					t.Errorf("%s %s is %s, and has a hint", parent, name, found.CommandPath())
				}
			}
		}
	}
	for i, h := range flagHints {
		for _, name := range h.commands {
			cmd, _, err := (&app{}).root().Find([]string{name})
			if err != nil {
				t.Errorf("flag hint %d: %v", i, err)
				continue
			}
			for _, flag := range h.flags {
				if cmd.Flags().Lookup(flag) != nil || len(flag) == 1 && cmd.Flags().ShorthandLookup(flag) != nil {
					t.Errorf("podstead %s has the flag %s, and a hint for it", name, flag)
				}
			}
		}
	}
}

// TestHintsForCommandLines checks that commands of other tools that are not supported, with their flags, fail with a hint.
func TestHintsForCommandLines(t *testing.T) {
	h := newListed(t)
	for line, hint := range map[string]string{
		"create configmap c --from-literal=a=b":      "write a table [[configMaps]] with name and data in the pod file",
		"create secret generic s --from-literal=a=b": "write a table [[secrets]] with name and data in the pod file",
		"create deployment web --image=busybox":      "create the pod with podstead apply FILE",
		"create job j --image=busybox -- date":       "create the pod with podstead apply FILE",
		"create service clusterip web --tcp=80":      "forward it with podstead port-forward POD PORT",
		"create sa robot":                            "group podstead-ro may read",
		"create quota q --hard=cpu=1":                "resources.limits",
		"create pdb p --min-available=1":             "does not preempt pods",
		"run nginx --image=nginx":                    imageHint,
		"run --image nginx web":                      imageHint,
		"run -d -p 80:80 nginx":                      imageHint,
		"run nginx":                                  imageHint,
		"run --rm web ls -la /data":                  "put -- before a command with flags: podstead run web -- ls ...",
		"run nginx sh -p 80:80":                      "hint: if nginx is an image: " + imageHint,
		"run nginx:1.27 sh -p 80:80":                 "hint: " + imageHint,
		"run quay.io/team/web sh -c id":              "hint: " + imageHint,
		"run nginx:1.27 env":                         "run nginx:1.27: no such file\nhint: " + imageHint,
		"run -it localhost:5000/web -- sh":           "hint: " + imageHint,
		"api-resources":                              "podstead explain",
		"dashboard":                                  "podstead ui",
		"init web":                                   "podstead validate FILE",
		"auto-update":                                "imagePullPolicy to Always",
		"backup":                                     "podstead volume export VOLUME -o FILE",
		"volume load x":                              "podstead volume import VOLUME FILE",
		"volume exprot x":                            "did you mean export?",
		"gt":                                         "did you mean get?\n",
		"man":                                        "run podstead help all for a list of commands",
		"proxy --port=8080":                          "podstead port-forward POD PORT",
		"container ls -a":                            "podstead ps",
		"network ls":                                 "podstead get",
		"generate systemd web":                       "docs/howto/pods-as-systemd-units.md",
		"sh web":                                     "podstead exec -it POD -- sh",
		"image tag a b":                              "podstead image import FILE",
		"image save -o x a":                          "podstead image export IMAGE -o FILE",
		"volume create x":                            "podstead apply FILE",
		"volume prune -f":                            "podstead system prune --volumes",
		"system info":                                "podstead doctor",
		"top nodes":                                  "podstead top",
		"get pods -L app":                            "--show-labels",
		"get --raw /healthz":                         "docs/reference/api.md",
		"--kubeconfig x get pods":                    "--socket",
		"apply -f x --dry-run=client":                "podstead plan FILE",
		"apply -k overlays":                          "pod files",
		"stop -t 5 web":                              "podstead stop POD --grace-period SECONDS",
		"kill -s HUP web":                            "kill -HUP 1",
		"exec -u 0 web id":                           "podstead exec POD -- env A=1 COMMAND",
		"ps --format json":                           "podstead get -o json",
		"inspect --format {{.State}} web":            "-o go-template=",
		"get --no-such-flag":                         "run podstead get --help for usage",
		"create namespace n":                         "all pods of a host are in the namespace default",
		"scale --replicas=3 deployment/web":          "podstead apply DIR",
		"label pods web a=b":                         "podstead edit POD",
		"patch pod web -p {}":                        "podstead edit POD",
		"drain node":                                 "podstead stop --all",
		"build -t web .":                             "podstead image import FILE",
	} {
		got := h.run(t, line)
		if got.code != statusUsage || !strings.Contains(got.stderr, "hint: ") || !strings.Contains(got.stderr, hint) || got.stdout != "" {
			t.Errorf("%s: exit code %d, stderr %q", line, got.code, got.stderr)
		}
	}
}
