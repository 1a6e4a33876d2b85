package runtime

import (
	"context"
	"encoding/json"
	"path/filepath"

	"github.com/containerd/containerd/v2/client"

	"github.com/podstead/podstead/runtime/record"
	"github.com/podstead/podstead/runtime/termination"
	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

// messagePolicy is how the termination message of a run is found, as its label keeps it.
type messagePolicy struct {
	Log bool `json:"log"` // the end of the log stands in for an empty message of a run that failed
}

func messageLabel(c *spec.Container) string {
	text, err := json.Marshal(messagePolicy{Log: c.TerminationMessagePolicy == spec.TerminationMessageFallbackToLogs})
	if err != nil {
		return ""
	}
	return string(text)
}

// messageFile is the file that a run is shown at its terminationMessagePath.
func (r *Runtime) messageFile(uid, container, id string) string {
	return filepath.Join(r.podDir(uid), "messages", container, id)
}

// withMessage adds what the container has left as its termination message. It is read anew each time: labels have no room for
// it, and the file stays as long as the record.
func (r *Runtime) withMessage(ctx context.Context, c client.Container, e lifecycle.Exit) lifecycle.Exit {
	info, err := record.Info(ctx, c)
	var policy messagePolicy
	if err != nil || json.Unmarshal([]byte(info.Labels[record.LabelMessage]), &policy) != nil {
		return e // of a record that an older version made
	}
	text, err := termination.Read(r.messageFile(info.Labels[record.LabelUID], info.Labels[record.LabelContainer], c.ID()))
	if err == nil && text == "" && policy.Log && e.Code != 0 {
		text, err = termination.FromLog(ctx, info.Labels[record.LabelLog])
	}
	if err != nil {
		text = err.Error()
	}
	switch {
	case e.Message == "":
		e.Message = text
	case text != "":
		e.Message += ": " + text
	}
	return e
}
