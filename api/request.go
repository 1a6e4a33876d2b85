package api

// CreateRequest requests a pod.
type CreateRequest struct {
	// File is the absolute path of the pod file. Relative paths in the text are relative to its directory. The daemon does not read the
	// file, but it reads the env files that the text refers to.
	File string `json:"file"`
	Text string `json:"text"`
	// Suffix completes metadata.generateName. A request that is repeated must have the same one. Default: a random one.
	Suffix string `json:"suffix,omitempty"`
	// Interactive changes a container for a client that attaches to it.
	Interactive *Interactive `json:"interactive,omitempty"`
	// Session, if set, is the session of the client. The daemon stops the pod when the session expires.
	Session string `json:"session,omitempty"`
	// Keep reports that a pod is not deleted after its session has expired and it has terminated.
	Keep bool `json:"keep,omitempty"`
	// Unit is the systemd unit that the pod belongs to, `podstead@NAME.service`. The client is its main process. The pod is deleted at
	// boot: the unit starts it.
	Unit string `json:"unit,omitempty"`
	// Reload changes the pod of the unit to the definition in the text, as far as this does not replace the pod.
	Reload bool `json:"reload,omitempty"`
}

// Interactive gives a container standard input, and makes it one that does not restart. If the text does not set restartPolicy, it is
// Never.
type Interactive struct {
	// Container is the name of a container in containers.
	Container string `json:"container"`
	// TTY gives the container a terminal.
	TTY bool `json:"tty,omitempty"`
	// Name makes the pod one with this name that runs Command in the container and nothing else, without the other containers, ports and
	// probes of the text. Empty: the pod runs what the text defines.
	Name    string   `json:"name,omitempty"`
	Command []string `json:"command,omitempty"`
}

// Created is the response to a [CreateRequest]: the pod, and the warnings about its file.
type Created struct {
	Pod      Pod       `json:"pod"`
	Warnings []Problem `json:"warnings,omitempty"`
	// TakenOver reports that the pod existed: it was created from the same file by a client that was killed.
	TakenOver bool `json:"takenOver,omitempty"`
}

// Problem is a [spec.Problem].
type Problem struct {
	File    string `json:"file"`
	Line    int    `json:"line"`
	Column  int    `json:"column"`
	Path    string `json:"path,omitempty"`
	Message string `json:"message"`
	Hint    string `json:"hint,omitempty"`
	Warning bool   `json:"warning,omitempty"`
	// Code identifies what a warning is about, as in docs/reference/warnings.md; empty: it has none.
	Code string `json:"code,omitempty"`
}

// EphemeralRequest requests an ephemeral container in a running pod.
type EphemeralRequest struct {
	// File is the name of the file in problems. Text is TOML, with the keys of a container at the top level.
	File string `json:"file"`
	Text string `json:"text"`
	// ImageArchives are image archives for the container, beside those of the pod. The paths are absolute. Only root can name files.
	ImageArchives []string `json:"imageArchives,omitempty"`
	// UID, if set, restricts the request to the pod with this UID.
	UID string `json:"-"`
}

// ConditionRequest sets a condition of a pod.
type ConditionRequest struct {
	Status  string `json:"status"` // "True", "False" or "Unknown"
	Reason  Reason `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`
	// UID, if set, restricts the request to the pod with this UID.
	UID string `json:"-"`
}

// Deletion is the response to a request to delete a pod.
type Deletion struct {
	// File is the file in the pods directory that was removed; empty: the pod had none.
	File string `json:"file,omitempty"`
}

// Started is the response to a request to start or restart a pod.
type Started struct {
	// NewerImages are the containers that keep their image although an image archive, an image directory or an import has a newer one.
	// Applying the pod file again uses it.
	NewerImages []string `json:"newerImages,omitempty"`
	// File is the pod's file in the pods directory; empty: it has none.
	File string `json:"file,omitempty"`
	// Unit is the systemd unit that starts the pod; empty: none does.
	Unit string `json:"unit,omitempty"`
	// Run is the name of the pod that was created, because the pod is started by a schedule; empty: it is not.
	Run string `json:"run,omitempty"`
}

// UnitOf returns the systemd unit that starts a pod of units.d.
func UnitOf(pod string) string { return "podstead@" + pod + ".service" }
