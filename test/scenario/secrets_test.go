//go:build e2e

package scenario

import (
	"context"
	"crypto/sha256"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"

	"github.com/podstead/podstead/api"
)

// hidden are the secret values of the test, by source.
type hidden struct{ inline, envFile, directory, credential, program string }

// newHidden creates unique values. The inline one has characters that are escaped in quotes.
func newHidden() hidden {
	random := rand.New(rand.NewPCG(3, 3))
	value := func() string {
		const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
		var b strings.Builder
		for range 24 {
			b.WriteByte(letters[random.IntN(len(letters))])
		}
		return b.String()
	}
	return hidden{value() + `"\'<` + value(), value(), value(), value(), value()}
}

// sum is the expected output of the container: it shows that all values arrived without revealing them.
func (h hidden) sum() string {
	every := h.inline + h.envFile + h.directory + h.credential
	return fmt.Sprintf("%x", sha256.Sum256([]byte(every+every+every)))
}

const (
	// sees prints a hash of the secrets in environment variables, in an argument, and in files of both kinds of volumes.
	sees = `f() { printf %s "$1$E_word$DIRECTORY$CREDENTIAL"; cat /inline/word /env/word /directory/word /credential/shop.word; cat /all/inline /all/env /all/directory /all/credential; }
f "$1" | sha256sum | sed 's/^/sum /'`
	volumes = `env.INLINE.secretKeyRef = { name = "inline", key = "word" }
env.DIRECTORY.secretKeyRef = { name = "directory", key = "word" }
env.CREDENTIAL.secretKeyRef = { name = "credential", key = "shop.word" }
envFrom = [{ prefix = "E_", secretRef = { name = "env" } }]
volumeMounts = { inline = "/inline", env = "/env", directory = "/directory", credential = "/credential", all = "/all" }

[[containers]]
name = "wrong"
image = "` + busybox + `"
command = ["$(PROGRAM)"]
env.PROGRAM.secretKeyRef = { name = "program", key = "word" }

[[volumes]]
name = "inline"
secret = { secretName = "inline" }
[[volumes]]
name = "env"
secret = { secretName = "env" }
[[volumes]]
name = "directory"
secret = { secretName = "directory" }
[[volumes]]
name = "credential"
secret = { secretName = "credential" }
[[volumes]]
name = "all"
[[volumes.projected.sources]]
secret = { name = "inline", items = [{ key = "word", path = "inline" }] }
[[volumes.projected.sources]]
secret = { name = "env", items = [{ key = "word", path = "env" }] }
[[volumes.projected.sources]]
secret = { name = "directory", items = [{ key = "word", path = "directory" }] }
[[volumes.projected.sources]]
secret = { name = "credential", items = [{ key = "shop.word", path = "credential" }] }
`
)

// pod returns the file of a pod that uses all secrets, and then runs a script.
func (h hidden) pod(envFile, top, then string) string {
	return top + "restartBackoff = { initialSeconds = 0.5, maxSeconds = 1 }\n" + fmt.Sprintf(`
[[secrets]]
name = "inline"
data = { word = %q }
[[secrets]]
name = "env"
envFile = %q
[[secrets]]
name = "program"
data = { word = %q }
[[secrets]]
name = "credential"
credential = "shop.word"

[[containers]]
name = "c"
image = %q
command = ["sh", "-c", %q, "sh"]
args = ["$(INLINE)"]
`, h.inline, envFile, h.program, busybox, sees+then) + volumes
}

// TestSecretsAreNotStored: secrets arrive in the container, and are found only where they must be.
func TestSecretsAreNotStored(t *testing.T) {
	f := newFixture(t)
	h := newHidden()
	f.write("etc/secrets/directory/word", h.directory)
	f.write("credentials/shop.word", h.credential)
	envFile := f.write("word.env", "word="+h.envFile+"\n")
	f.Check(f.StopDaemon(f.Ctx()))
	f.Env = append(f.Env, "CREDENTIALS_DIRECTORY="+filepath.Join(f.Dir, "credentials"))
	f.MustRun("get")

	for _, format := range [][]string{{"-o", "json"}, nil} { // a foreground run, until the pod has terminated
		file := f.PodFile("once", h.pod(envFile, "restartPolicy = \"Never\"\n", ""))
		out, err := f.everything(append([]string{"run", file}, format...)...)
		if err == nil || !strings.Contains(out, "sum "+h.sum()) && !strings.Contains(out, h.sum()) {
			t.Fatalf("the run must fail after all secrets have arrived: %v\n%s", err, out)
		}
		f.hides(h, "podstead run", out)
	}

	f.MustCreate("keeper", h.pod(envFile, "", idle))
	seen := func(when string, running func(id string) bool) {
		t.Helper()
		f.Until("keeper", "running "+when, func(p *api.Pod) bool {
			c := p.Status.ContainerStatuses[0]
			return c.Name == "c" && c.State.Running != nil && running(c.ContainerID)
		})
		f.Await(func() error {
			if text := f.logs("keeper", "-c", "c"); text != "sum "+h.sum()+"  -\n" {
				return fmt.Errorf("%s: not all secrets have arrived:\n%s", when, text)
			}
			return nil
		})
		f.Until("keeper", "failing to start its wrong container", func(p *api.Pod) bool {
			c := p.Status.ContainerStatuses[1]
			return c.Name == "wrong" && c.RestartCount >= 2 &&
				strings.Contains(fmt.Sprint(c.LastState.Terminated, c.State.Waiting, c.State.Terminated), "[hidden]")
		})
		f.tellsNothing(h)
		f.keepsNothing(h)
	}
	var first string
	seen("before", func(id string) bool { first = id; return true })
	same := func(id string) bool { return id == first }
	f.Check(f.StopDaemon(f.Ctx()))
	f.MustRun("get")
	seen("after a restart of the daemon", same)
	f.MustKillDaemon()
	f.keepsNothing(h)
	f.MustRun("get")
	seen("after a kill of the daemon", same)
	f.Check(f.CutPower(f.Ctx()))
	f.MustRun("get")
	seen("after a loss of power", func(id string) bool { return id != first })
	f.MustRun("delete", "keeper", "--grace-period", "1")
	f.keeps(h, nil) // not even where they had to be
}

// everything runs a command and returns its standard output and error.
func (f *fixture) everything(args ...string) (string, error) {
	f.Helper()
	ctx, cancel := context.WithTimeout(f.Ctx(), deadline)
	defer cancel()
	out, err := f.Command(ctx, args...).CombinedOutput()
	return string(out), err
}

// tellsNothing checks that no command prints a secret.
func (f *fixture) tellsNothing(h hidden) {
	f.Helper()
	file := filepath.Join(f.Dir, "keeper.toml")
	for _, args := range [][]string{
		{"get"},
		{"get", "-o", "wide"},
		{"get", "-o", "json"},
		{"get", "-o", "yaml"},
		{"get", "keeper", "-o", "json"},
		{"get", "keeper", "-o", "yaml"},
		{"events"},
		{"events", "keeper"},
		{"events", "-o", "json"},
		{"logs", "keeper", "-c", "c"},
		{"logs", "keeper", "-c", "wrong"},
		{"doctor"},
		{"validate", file},
		{"run", file},
		{"version"},
	} {
		out, _ := f.everything(args...) // some must fail
		f.hides(h, "podstead "+strings.Join(args, " "), out)
	}
	list, err := f.Client().Pods(f.Ctx())
	f.Check(err)
	f.hides(h, "the API", fmt.Sprintf("%+v", list))
}

// hides checks that a text contains none of the values.
func (f *fixture) hides(h hidden, what, text string) {
	f.Helper()
	for name, forms := range h.forms() {
		for _, form := range forms {
			if strings.Contains(text, form) {
				f.Errorf("%s prints secret %q as %q:\n%s", what, name, form, text)
			}
		}
	}
}
