package channel

import (
	"encoding/json"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestStatusOfKubernetes compares statuses in JSON with those of Kubernetes.
func TestStatusOfKubernetes(t *testing.T) {
	for _, pair := range [][2]any{
		{Status{Status: StatusSuccess}, metav1.Status{Status: metav1.StatusSuccess}},
		{
			Status{
				Status: StatusFailure, Reason: "NonZeroExitCode", Message: "<m>", Code: 500,
				Details: &StatusDetails{Causes: []StatusCause{{Type: "ExitCode", Message: "3"}, {Type: "Hint"}}},
			},
			metav1.Status{
				Status: metav1.StatusFailure, Reason: "NonZeroExitCode", Message: "<m>", Code: 500,
				Details: &metav1.StatusDetails{Causes: []metav1.StatusCause{{Type: "ExitCode", Message: "3"}, {Type: "Hint"}}},
			},
		},
	} {
		got, err := json.Marshal(pair[0])
		if err != nil {
			t.Fatal(err)
		}
		want, err := json.Marshal(pair[1])
		if err != nil {
			t.Fatal(err)
		}
		if string(got) != string(want) {
			t.Errorf("%s, want %s", got, want)
		}
	}
}
