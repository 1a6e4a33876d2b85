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
