package server

import (
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/podstead/podstead/spec"
)

// TestApplicable: a client that is not root cannot have the daemon read files of the host at every start.
func TestApplicable(t *testing.T) {
	const text = `imageArchives = ["/a.tar"]
volumes = [{ name = "v", hostPath = { path = "/srv" } }, { name = "e", emptyDir = {} }]
containers = [{ name = "c", image = "i:1" }]
configMaps = [{ name = "m", envFile = "/m.env" }]
secrets = [{ name = "s", envFile = "/s.env" }, { name = "c", credentialFile = "/s.cred" }]
`
	pod, problems := spec.Parse("/web.toml", []byte(text))
	if pod == nil {
		t.Fatal(problems)
	}
	stranger := peer{uid: uint32(os.Geteuid()) + 1}
	err := asError(stranger.applicable(pod))
	if err.Status != http.StatusForbidden || err.Hint == "" {
		t.Errorf("%d %q with hint %q, want 403", err.Status, err.Message, err.Hint)
	}
	for _, field := range []string{
		"imageArchives[0]", "volumes[0].hostPath", "configMaps[0].envFile", "secrets[0].envFile", "secrets[1].credentialFile",
	} {
		if !strings.Contains(err.Message, field) {
			t.Errorf("%q does not name %s", err.Message, field)
		}
	}
	const decrypts = `secrets[1].credentialFile: "/s.cred": only root can decrypt credentials`
	if err := asError(stranger.checkPaths(pod)); err.Status != http.StatusForbidden || !strings.Contains(err.Message, decrypts) {
		t.Errorf("%d %q, want %q", err.Status, err.Message, decrypts)
	}
	if err := (peer{uid: 0}).applicable(pod); err != nil {
		t.Errorf("root: %v", err)
	}
	plain, _ := spec.Parse("/web.toml", []byte(`containers = [{ name = "c", image = "i:1" }]`))
	if err := stranger.applicable(plain); err != nil {
		t.Errorf("pod without files: %v", err)
	}
}
