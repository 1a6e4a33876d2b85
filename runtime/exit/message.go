package exit

import (
	"context"
	"encoding/json"

	"github.com/containerd/containerd/v2/client"

	"github.com/podstead/podstead/runtime/record"
	"github.com/podstead/podstead/runtime/termination"
	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

// messagePolicy is the JSON of [record.LabelMessage].
type messagePolicy struct {
	Log bool `json:"log"` // use the end of the log if the message is empty and the container failed
}

// MessageLabel returns the value of [record.LabelMessage] for a container.
func MessageLabel(c *spec.Container) string {
	text, err := json.Marshal(messagePolicy{Log: c.TerminationMessagePolicy == spec.TerminationMessageFallbackToLogs})
	if err != nil {
		return ""
	}
	return string(text)
}

// withMessage adds the termination message of a container. It is read each time: it is too long for a label, and the file exists as long as
// the record.
func (r *Recorder) withMessage(ctx context.Context, c client.Container, e lifecycle.Exit) lifecycle.Exit {
	info, err := record.Info(ctx, c)
	var policy messagePolicy
	if err != nil || json.Unmarshal([]byte(info.Labels[record.LabelMessage]), &policy) != nil {
		return e // a record of an older version
	}
	text, err := termination.Read(r.dirs.Message(info.Labels[record.LabelUID], info.Labels[record.LabelContainer], c.ID()))
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
