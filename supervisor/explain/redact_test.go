package explain_test

import (
	"encoding/json"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/internal/plain"
	"github.com/podstead/podstead/supervisor/explain"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

// withSecrets explains a pod whose log, termination message and probe output contain a text.
func withSecrets(t *testing.T, text string) (*world, api.Explanation) {
	w := newWorld(t)
	w.pod = checked(pod(server), liveness)
	w.log = []string{"connect to db with " + text, text}
	w.probes("echo '" + strings.ReplaceAll(text, "\n", " ") + "'; exit 1")
	w.add()
	time.Sleep(35 * time.Second)
	s, _ := w.Pod("web")
	w.engine.Crash(s.Facts.UID, "app", lifecycle.Exit{Code: 3, Message: "login failed: " + text})
	time.Sleep(time.Second)
	return w, w.explanation()
}

func TestRedact(t *testing.T) {
	for _, test := range []struct {
		name, secret, text string
		leaks              []string
	}{
		{"value", "hunter22", "hunter22", []string{"hunter22"}},
		{"value with a newline at its end", "hunter22\n", "hunter22", []string{"hunter22"}},
		{"one line of several", "first-line\nsecond-line\n", "second-line", []string{"second-line"}},
		{"quoted value", "tab\tand \"quotes\"", `tab\tand \"quotes\"`, []string{"quotes"}},
		{"value that was cut off", "a-very-long-password", "a-very-long-pass", []string{"a-very", "long"}},
		{"value that was cut off inside a rune", "pässwörter-sind-lang", "pässwörter-sind\uFFFD…", []string{"pässw", "sind"}},
		{"longer value that contains a shorter one", "pass\npassword", "password", []string{"word"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w, e := withSecrets(t, test.text)
				explain.Redact(&e, plain.NewRedactor([]string{test.secret}))
				text := w.report(&e) + w.json(&e)
				for _, leak := range test.leaks {
					if strings.Contains(text, leak) {
						t.Errorf("%q is in\n%s", leak, text)
					}
				}
				if !strings.Contains(text, explain.Redacted) {
					t.Errorf("nothing is redacted in\n%s", text)
				}
			})
		})
	}
}

func TestRedactLeavesShortValues(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, e := withSecrets(t, "port 1")
		explain.Redact(&e, plain.NewRedactor([]string{"1", "", "  \n"}))
		if text := w.report(&e); strings.Contains(text, explain.Redacted) {
			t.Errorf("redacted:\n%s", text)
		}
	})
}

func TestWithhold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, e := withSecrets(t, "hunter22")
		explain.Withhold(&e)
		explain.Render(&e, w.now().Wall)
		text, err := json.Marshal(e)
		if err != nil || strings.Contains(string(text), "hunter22") || !strings.Contains(string(text), "withheld") {
			t.Errorf("%s, %v", text, err)
		}
	})
}
