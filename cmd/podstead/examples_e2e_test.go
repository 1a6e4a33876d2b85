//go:build e2e

package main

import (
	"cmp"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/podstead/podstead/test/transcript"
)

// exampleRun is what a line of an example needs beyond the host that [prepareExamples] describes. All other lines run on this host and exit
// with 0.
type exampleRun struct {
	// before is a line for the shell that runs first.
	before string
	// as is a line for the shell that runs in its place, such as one with a terminal; empty: the line itself.
	as string
	// until is a pattern of the output after which Ctrl-C ends the command; empty: it exits without.
	until string
}

// The parts of examples that several lines need.
const (
	noWeb      = "podstead delete web db --force"
	threeTimes = "sh generations.sh"
)

// dumped runs the pod shop until its container has written the file that is copied.
const dumped = "podstead apply shop.toml --wait && timeout 30 sh -c " +
	"'until podstead exec shop -c db -- test -s /var/lib/db/dump.sql; do sleep 0.1; done'"

// Preparations of examples with notifiers and images.
const (
	notified      = `printf '[[notify]]\nname = "ops"\ncommand = ["/bin/true"]\n' >$PODSTEAD_CONFIG`
	pulled        = "podstead image pull docker.io/library/nginx:1.27"
	pulledForeign = pulled + " --platform linux/arm64"
	exported      = pulled + " && podstead image export docker.io/library/nginx:1.27 -o shop.tar"
	bundled       = "podstead bundle create pods/ -o shop.bundle"

	exportedVolume = "podstead stop db && podstead volume export pgdata -o pgdata.tar"
)

// exampleRuns are the lines of examples that need a preparation, or that a user ends with Ctrl-C.
var exampleRuns = map[string]exampleRun{
	"podstead run web.toml db.toml --timeout 10m":  {before: noWeb, until: "app started"},
	"kubectl get pod web -o yaml | podstead run -": {before: noWeb},
	"podstead run -it console.toml": {
		before: "podstead delete console --force || true",
	},
	"podstead run -i db.toml -c import <data.sql >report": {before: "podstead delete db --force"},
	"podstead run job.toml --rm=false": {
		before: "podstead delete job --force || true",
	},
	"podstead ps -f compose.yaml":      {before: "podstead up -d compose.yaml"},
	"podstead get -l app=shop --watch": {until: `(?m)^web `},
	"podstead logs web -c app --previous": {
		before: "podstead restart web -c app --wait",
	},
	"podstead logs web --tail 20 --follow":               {until: "tick"},
	"podstead logs -l app=shop -f":                       {until: "tick"},
	"podstead logs -f":                                   {until: "tick"},
	"podstead events --follow -o json":                   {until: `"pod":"web"`},
	"podstead plan pods/ --exit-code >/dev/null":         {before: "podstead apply pods/"},
	"podstead validate pods/ --strict":                   {before: "sed -i '1i # podstead: allow no-memory-limit' pods/*.toml"},
	"podstead rollout undo web":                          {before: threeTimes},
	"podstead rollout history web --generation 3":        {before: threeTimes},
	"podstead rollout undo web --to-generation 2 --wait": {before: threeTimes},
	"podstead start web":                                 {before: "podstead stop web"},
	"podstead start --all --wait":                        {before: "podstead stop web db"},
	"podstead volume import pgdata pgdata.tar --replace": {before: exportedVolume},
	"podstead volume rm pgdata":                          {before: "podstead delete db --force"},
	"podstead volume rm pgdata uploads":                  {before: "podstead delete db --force"},
	"podstead wait -l app=shop --for=delete": {
		before: "podstead delete -l app=shop --wait=false",
	},
	"podstead wait --all --for=condition=Ready --timeout 0": {
		before: "podstead delete --field-selector status.phase=Succeeded && podstead delete -l '!app'",
	},
	"podstead cp -c db shop:/var/lib/db/dump.sql .":       {before: dumped},
	"podstead port-forward web 8080:80":                   {until: "Forwarding from"},
	"podstead port-forward pod/web :80 9090":              {until: "Forwarding from"},
	"podstead port-forward web 8080:80 --address 0.0.0.0": {until: "Forwarding from"},
	"podstead top web --containers --watch --interval 5s": {until: "web"},
	"podstead attach web":                                 {until: "tick"},
	"ssh -t edge1 podstead tui":                           {as: `printf q | script -qec "ssh -t edge1 podstead tui" /dev/null`},
	"podstead tui":                                        {as: `printf q | script -qec "podstead tui" /dev/null`},
	"podstead ui":                                         {until: "#token="},
	"podstead ui --listen 127.0.0.1:8088":                 {until: "127.0.0.1:8088/#token="},
	"podstead ui --allow-actions":                         {until: "#token="},
	"podstead attach -it console": {
		before: "podstead apply console.toml --wait",
	},
	"podstead image export docker.io/library/nginx:1.27 -o nginx.tar":                             {before: pulled},
	"podstead bundle apply shop.bundle --wait":                                                    {before: bundled},
	"podstead bundle apply shop.bundle --dry-run":                                                 {before: bundled},
	"podstead bundle inspect shop.bundle":                                                         {before: bundled},
	"podstead bundle inspect shop.bundle -o json":                                                 {before: bundled},
	"podstead image export docker.io/library/nginx:1.27 -o - | ssh edge1 podstead image import -": {before: pulled},
	"podstead image history docker.io/library/nginx:1.27":                                         {before: pulled},
	"podstead image history docker.io/library/nginx:1.27 --platform linux/arm64":                  {before: pulledForeign},
	"podstead image import shop.tar":                                                              {before: exported},
	"docker save nginx:1.27 | podstead image import -":                                            {before: pulled},
	"podstead image inspect docker.io/library/nginx:1.27":                                         {before: pulled},
	"podstead image inspect docker.io/library/nginx:1.27 | jq '.[0].config.cmd'":                  {before: pulled},
	"podstead image rm docker.io/library/nginx:1.27":                                              {before: pulled},
	"podstead image rm docker.io/library/nginx:1.27 --platform linux/arm64":                       {before: pulledForeign},
	"podstead logout docker.io": {
		before: `echo '{"auths":{"https://index.docker.io/v1/":{"auth":"cm9ib3Q6dG9rZW4="}}}' >$PODSTEAD_CONFIG_DIR/auth.json && chmod ` +
			`600 $PODSTEAD_CONFIG_DIR/auth.json`,
	},
	"podstead logout registry.example.com": {
		before: "podstead login registry.example.com -u robot --password-stdin <token",
	},
	"podstead notify test":     {before: notified},
	"podstead notify test ops": {before: notified},
	"podstead daemon --engine-cgroup-driver systemd": {
		before: "podstead daemon stop", until: "daemon ready",
	},
	"podstead daemon --policy-pod-security baseline": {
		before: "podstead daemon stop", until: "daemon ready",
	},
}

// TestHelpExamples runs every line of the examples in the help of every command on real containers.
func TestHelpExamples(t *testing.T) {
	shell := newPageHost(t)
	prepareExamples(t, shell)
	for _, cmd := range exampleCommands() {
		t.Run(commandName(cmd), func(t *testing.T) {
			for _, line := range exampleLines(cmd) {
				runExample(t, shell, line)
			}
		})
	}
}

// TestExampleRuns checks that each preparation is for a line of an example.
func TestExampleRuns(t *testing.T) {
	used := map[string]bool{}
	for _, cmd := range exampleCommands() {
		for _, line := range exampleLines(cmd) {
			used[line] = true
		}
	}
	for line := range exampleRuns {
		if !used[line] {
			t.Errorf("no help has the example %s", line)
		}
	}
}

// exampleCommands returns the commands whose help has examples.
func exampleCommands() []*cobra.Command {
	var found []*cobra.Command
	var each func(cmd *cobra.Command)
	each = func(cmd *cobra.Command) {
		if len(exampleLines(cmd)) > 0 {
			found = append(found, cmd)
		}
		for _, c := range cmd.Commands() {
			if !c.Hidden && c.Name() != "completion" && c.Name() != "help" { // of cobra
				each(c)
			}
		}
	}
	each((&app{}).root())
	return found
}

// exampleGroups returns patterns of the subtests of TestHelpExamples, which run side by side, each on a host of its own.
func exampleGroups() []string {
	const groups = 5
	names := make([][]string, groups)
	for i, cmd := range exampleCommands() {
		names[i%groups] = append(names[i%groups], strings.ReplaceAll(commandName(cmd), " ", "_"))
	}
	patterns := make([]string, groups)
	for i := range names {
		patterns[i] = "^(" + strings.Join(names[i], "|") + ")$"
	}
	return patterns
}

// exampleLines returns the commands in the examples of a command.
func exampleLines(cmd *cobra.Command) []string {
	var lines []string
	for line := range strings.Lines(cmd.Example) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			lines = append(lines, line)
		}
	}
	return lines
}

func runExample(t *testing.T, shell *transcript.Shell, line string) {
	t.Helper()
	run := exampleRuns[line]
	mustRun(t, shell, "sh prepare.sh")
	if run.before != "" {
		mustRun(t, shell, run.before)
	}
	line = cmp.Or(run.as, line)
	merged, interrupted := line, func(string) bool { return false }
	if run.until != "" {
		merged, interrupted = line+" 2>&1", regexp.MustCompile(run.until).MatchString
	}
	r, err := shell.Exec(t.Context(), merged, interrupted)
	if err != nil || r.Code != 0 && run.until == "" || run.until != "" && !interrupted(r.Stdout) {
		t.Errorf("%s: exit code %d, %v\nstdout:\n%s\nstderr:\n%s", line, r.Code, err, r.Stdout, r.Stderr)
	}
}

// prepareExamples writes the files that examples name, and the programs of the host that they use. The script prepare.sh restores the pods.
func prepareExamples(t *testing.T, shell *transcript.Shell) {
	t.Helper()
	const restricted = `
securityContext = { runAsNonRoot = true, runAsUser = 1000, seccompProfile = { type = "RuntimeDefault" } }
`
	const bounded = `securityContext = { allowPrivilegeEscalation = false, capabilities = { drop = ["ALL"] } }
`
	container := func(name, script string) string {
		return "[[containers]]\nname = \"" + name + "\"\nimage = \"busybox:1.36\"\ncommand = [\"sh\", \"-c\", \"" + script + "\"]\n" +
			bounded
	}
	const runs = "trap 'exit 0' TERM; echo app started; while :; do echo tick; sleep 0.5; done"
	if err := os.Symlink("images/busybox.tar", filepath.Join(shell.Dir, "busybox.tar")); err != nil {
		t.Fatal(err)
	}
	const shop = "labels = { app = \"shop\" }\nterminationGracePeriodSeconds = 1\nupdate = { minReadySeconds = 0, onFailure = \"keep\" }\n"
	for name, text := range map[string]string{
		"web.toml": shop + "readinessGates = [{ conditionType = \"example.org/door\" }]" + restricted +
			"volumes = [{ name = \"www\", emptyDir = {} }, { name = \"conf\", emptyDir = {} }, { name = \"log\", emptyDir = {} }]\n" +
			container("app", "EDITION=1; echo healthy >/www/healthz; echo line >/var/log/nginx/access.log; httpd -p 8080 -h /www; "+runs) +
			"volumeMounts = [{ name = \"www\", mountPath = \"/www\" }, { name = \"conf\", mountPath = \"/etc/nginx/conf.d\" }, " +
			"{ name = \"log\", mountPath = \"/var/log/nginx\" }]\n" + container("proxy", runs),
		"db.toml": shop +
			"volumes = [{ name = \"data\", persistentVolumeClaim = { claimName = \"pgdata\" } }, { name = \"up\", persistentVolumeClaim " +
			"= { claimName = \"uploads\" } }]\n" +
			container("app", runs) +
			"volumeMounts = [{ name = \"data\", mountPath = \"/data\" }, { name = \"up\", mountPath = \"/up\" }]\n" +
			container("import", "cat; exit 0") + "stdin = true\nstdinOnce = true\n",
		"shop.toml": "terminationGracePeriodSeconds = 1\nvolumes = [{ name = \"db\", emptyDir = {} }]\n" + container("web", runs) +
			container("db", "echo dump >/var/lib/db/dump.sql; "+runs) + "volumeMounts = [{ name = \"db\", mountPath = \"/var/lib/db\" }]\n",
		"console.toml":    "terminationGracePeriodSeconds = 1\n" + container("app", "exec sh") + "stdin = true\ntty = true\n",
		"site.conf":       "listen 8080\n",
		"data":            "data\n",
		"data.sql":        "create\n",
		"token":           "planted\n",
		"job.toml":        "restartPolicy = \"Never\"\n" + container("app", "echo done"),
		"batch.toml":      "restartPolicy = \"Never\"\n" + container("app", "echo done"),
		"pods/cache.toml": "terminationGracePeriodSeconds = 1\n" + container("app", runs),
		"manifest.yaml": "apiVersion: v1\nkind: Pod\nmetadata: {name: web}\nspec:\n  restartPolicy: Never\n  containers:\n" +
			"  - {name: app, image: 'busybox:1.36', command: ['true']}\n",
		"compose.yaml": "name: site\nservices:\n  www: {image: 'busybox:1.36', command: sleep 1000, stop_grace_period: 1s}\n" +
			"  shell: {image: 'busybox:1.36', command: sleep 1000, profiles: [debug]}\n",
		"units/www.container": "[Container]\nImage=docker.io/library/busybox:1.36\nExec=sleep 1000\n",
		"scenario.toml":       "[[assert]]\npod = \"web\"\nphase = \"Running\"\n",
		"prepare.sh": `set -e
tries=0 # pods of the line before may still be deleted
until podstead apply web.toml db.toml batch.toml >prepare.out 2>prepare.err && podstead start web db >/dev/null 2>prepare.err; do
	tries=$((tries + 1))
	[ $tries -lt 100 ] || { cat prepare.err >&2; exit 1; }
	sleep 0.2
done
podstead condition set web example.org/door=True >/dev/null
if grep -q configured prepare.out; then # the containers of an edited pod run, and are ready, until they have stopped
	podstead rollout status web --timeout 60s >/dev/null
fi
podstead wait web db --for=condition=Ready --timeout 60s >/dev/null
`,
		"generations.sh": `set -e
podstead delete web --force
podstead apply web.toml
podstead condition set web example.org/door=True
podstead wait web --for=condition=Ready --timeout 60s
mkdir -p changed
for edition in 2 3; do
	sed "s/EDITION=1/EDITION=$edition/" web.toml >changed/web.toml
	podstead apply changed/web.toml --wait
done
`,
		"../bin/vi":      "#!/bin/sh\nexec sed -i 's/EDITION=[0-9]/EDITION=7/' \"$1\"\n",
		"../bin/nano":    "#!/bin/sh\nexec sed -i 's/EDITION=[0-9]/EDITION=8/' \"$1\"\n",
		"../bin/kubectl": "#!/bin/sh\nexec cat manifest.yaml\n",
		"../bin/docker":  "#!/bin/sh\nexec podstead image export docker.io/library/$2 -o -\n",
		"../bin/pass":    "#!/bin/sh\necho planted\n",
		"../bin/ssh":     "#!/bin/sh\n[ \"$1\" != -t ] || shift\nshift\nexec \"$@\"\n",
	} {
		path, mode := filepath.Join(shell.Dir, name), fs.FileMode(0o644)
		if strings.HasPrefix(name, "../bin/") {
			mode = 0o755
		}
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Remove(path); err != nil && !os.IsNotExist(err) { // the link to podstead
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
	}
}
