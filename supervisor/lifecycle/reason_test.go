package lifecycle_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/podstead/podstead/supervisor/lifecycle"
)

func TestRefusals(t *testing.T) {
	cause := errors.New("sshd listens there")
	port := lifecycle.Refusal{
		Reason: lifecycle.ReasonNodePorts, Field: "containers[0].ports[0].hostPort", Message: cause.Error(), Cause: cause,
	}
	sysctl := lifecycle.Refusal{Reason: lifecycle.ReasonSysctlForbidden, Message: "no"}
	other := lifecycle.Refusal{Reason: lifecycle.ReasonUnexpectedAdmissionError, Message: cause.Error(), Cause: cause}
	for _, test := range []struct {
		name string
		err  error
		want []lifecycle.Refusal
	}{
		{"nil", nil, nil},
		{"one refusal", port, []lifecycle.Refusal{port}},
		{"wrapped refusal", fmt.Errorf("check: %w", port), []lifecycle.Refusal{port}},
		{"joined refusals", errors.Join(port, errors.Join(sysctl)), []lifecycle.Refusal{port, sysctl}},
		{"other error", cause, []lifecycle.Refusal{other}},
		{"refusal and other error", errors.Join(cause, sysctl), []lifecycle.Refusal{other, sysctl}},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := lifecycle.Refusals(test.err); !slices.Equal(got, test.want) {
				t.Errorf("%+v, want %+v", got, test.want)
			}
		})
	}
	if !errors.Is(port, cause) {
		t.Error("refusal does not wrap its cause")
	}
	if got, want := port.Error(), "NodePorts: containers[0].ports[0].hostPort: sshd listens there"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got, want := other.Error(), "sshd listens there"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
