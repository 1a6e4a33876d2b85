package exit

import (
	"context"
	"encoding/json"

	"github.com/podstead/podstead/runtime/record"
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

// message is where the termination message of a container is. It is read each time: it is too long for a label, and the file exists as long
// as the record.
type message struct {
	file string // empty: the record is of an older version, there is no message
	log  string // read if the file is empty and the container failed; empty: not read
	// prompt is true if the log is complete and no process is left when the wait for the container ends.
	prompt bool
}

// messageOf returns the message of a container with these labels.
func (r *Recorder) messageOf(id string, labels map[string]string) message {
	var policy messagePolicy
	prompt := labels[record.LabelPrompt] == "true"
	if json.Unmarshal([]byte(labels[record.LabelMessage]), &policy) != nil {
		return message{prompt: prompt}
	}
	m := message{prompt: prompt, file: r.dirs.Message(labels[record.LabelUID], labels[record.LabelContainer], id)}
	if policy.Log {
		m.log = labels[record.LabelLog]
	}
	return m
}

// withMessage adds the message of a container to its exit.
func (r *Recorder) withMessage(ctx context.Context, m message, e lifecycle.Exit) lifecycle.Exit {
	if m.file == "" {
		return e
	}
	text, err := r.messages.Read(ctx, m.file)
	if err == nil && text == "" && m.log != "" && e.Code != 0 {
		text, err = messageFromLog(ctx, m.log)
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
