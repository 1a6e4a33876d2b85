package spec

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const secretFile = `
containers = [{ name = "a", image = "i" }]
secrets = [{ name = "db", data = { password = "hunter2", user = "bob" } }, { name = "tls", credential = "c" }]
`

func TestSecretsAreHidden(t *testing.T) {
	pod, problems := Parse("web.toml", []byte(secretFile))
	if pod == nil {
		t.Fatal(problems)
	}
	text, err := json.Marshal(pod)
	if err != nil {
		t.Fatal(err)
	}
	var logged bytes.Buffer
	log := slog.New(slog.NewTextHandler(&logged, nil))
	log.Info("pod", slog.Any("pod", pod), slog.Any("value", pod.Secrets[0].Data["password"]))
	slog.New(slog.NewJSONHandler(&logged, nil)).Info("pod", slog.Any("pod", pod))
	value := pod.Secrets[0].Data["password"]
	for _, got := range []string{
		string(text), logged.String(), fmt.Sprint(pod.Secrets), fmt.Sprintf("%+v %#v %v", pod.Secrets, pod.Secrets, value),
		fmt.Sprintf("%s %q %x", value, value, value), fmt.Errorf("bad %s", value).Error(), cmp.Diff(pod, &Pod{}),
	} {
		for _, secret := range []string{"hunter2", "bob", "68756e74657232"} {
			if strings.Contains(got, secret) {
				t.Errorf("secret %q in %s", secret, got)
			}
		}
	}
	if !strings.Contains(string(text), `"data":["password","user"]`) {
		t.Errorf("the keys are missing: %s", text)
	}
}

func TestSecretValuesRoundTrip(t *testing.T) {
	pod, problems := Parse("web.toml", []byte(secretFile))
	if pod == nil {
		t.Fatal(problems)
	}
	text, err := json.Marshal(pod)
	if err != nil {
		t.Fatal(err)
	}
	var back Pod
	if err := json.Unmarshal(text, &back); err != nil {
		t.Fatal(err)
	}
	if !back.Secrets[0].Lost() || back.Secrets[1].Lost() {
		t.Errorf("lost: %v, %v; want true for inline values, false for a credential", back.Secrets[0].Lost(), back.Secrets[1].Lost())
	}
	whole := back.WithSecretValues(pod.SecretValues())
	if diff := cmp.Diff(pod, whole); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if !back.Secrets[0].Lost() {
		t.Error("the receiver was changed")
	}
	if (&Pod{}).SecretValues() != nil || back.WithSecretValues(nil) != &back {
		t.Error("a pod without secrets changed")
	}
}

// TestProblemsHaveNoConfidentialValues: a file that is refused is in the status of its pod, which others may read.
func TestProblemsHaveNoConfidentialValues(t *testing.T) {
	const toml = "[[containers]]\nname = \"a\"\nimage = \"i\"\n"
	const yaml = "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec:\n  containers:\n  - name: a\n    image: i\n    env: "
	for _, c := range []struct{ file, text string }{
		{"a.toml", toml + "env.PASSWORD = 918273645\n"},
		{"a.toml", toml + "env.PASSWORD = [918273645]\n"},
		{"a.toml", toml + "env = \"PASSWORD=918273645\"\n"},
		{"a.toml", toml + "env = [\"PASSWORD=918273645\"]\n"},
		{"a.toml", toml + "env = [{ name = \"PASSWORD\", value = 918273645 }]\n"},
		{"a.toml", toml + "env.PASSWORD.secretKeyRef = \"918273645\"\n"},
		{"a.toml", toml + "env.PASSWORD.secretKeyRef = { name = \"s\", key = \"k\", optional = \"918273645\" }\n"},
		{"a.toml", toml + "env.PASSWORD = 91827364500000000000\n"},
		{"a.toml", toml + "env.PASSWORD = 9182736450000000.0\nname = 5\n"},
		{"a.toml", toml + "env.PASSWORD = 9182-73-64\n"},
		{"a.toml", toml + "[[secrets]]\nname = \"s\"\ndata.password = 918273645\n"},
		{"a.yaml", yaml + "[{name: PASSWORD, value: 918273645}]\n"},
		{"a.yaml", yaml + "[{name: PASSWORD, value: 91827364500000000000}]\n"},
		{"a.yaml", yaml + "{PASSWORD: 918273645}\n"},
	} {
		pod, problems := Parse(c.file, []byte(c.text))
		if pod != nil {
			t.Errorf("accepted:\n%s", c.text)
		}
		for _, p := range problems {
			if text := p.String() + p.Hint; strings.Contains(text, "9182") {
				t.Errorf("the value is in %s", text)
			}
		}
	}
}
