package server

import (
	"net/http"
	"slices"

	"github.com/podstead/podstead/api"
)

// Endpoints returns the table of endpoints.
func Endpoints() []Endpoint {
	return slices.Concat(
		daemonEndpoints(), podEndpoints(), readEndpoints(), statsEndpoints(), changeEndpoints(), fileEndpoints(), streamEndpoints(),
		copyEndpoints(), sessionEndpoints(), volumeEndpoints(), imageEndpoints(), registryEndpoints(), systemEndpoints())
}

// uidParameter restricts a request to a pod that was not deleted and created again.
var uidParameter = Parameter{Name: "uid", Type: Text, Description: "UID that the pod must have. Default: any."}

func daemonEndpoints() []Endpoint {
	return []Endpoint{
		{
			Method: "GET", Path: "/v1/health", ReadOnly: true, Routine: true,
			Summary: "Check that the daemon serves requests",
			call:    func(*Server, *http.Request) (any, error) { return struct{}{}, nil },
		},
		{
			Method: "GET", Path: "/v1/version", ReadOnly: true,
			Summary:  "Get the versions of the daemon and of its parts, and the policy of admission",
			Response: api.Version{},
			call:     func(s *Server, _ *http.Request) (any, error) { return s.version(), nil },
		},
		{
			Method: "POST", Path: "/v1/daemon/leave",
			Summary: "Stop the daemon; containers keep running",
			Details: "The response is sent before the daemon has stopped.",
			Query: []Parameter{{
				Name: "shutdown", Type: Boolean,
				Description: "Stop all pods first, as at a shutdown of the host. The next daemon starts them again.",
			}},
			call: (*Server).stopDaemon,
		},
	}
}

func podEndpoints() []Endpoint {
	return []Endpoint{
		{
			Method: "GET", Path: "/v1/pods", ReadOnly: true,
			Summary: "List pods, sorted by name, or watch them",
			Details: "A watch sends all pods as ADDED, one BOOKMARK without a pod, and then every change, until the client disconnects. " +
				"It has no position: " +
				"a client that was disconnected watches again, and compares the UIDs of the pods.",
			Query: []Parameter{
				{Name: "watch", Type: Boolean, Description: "Send a stream of changes instead of the list."}, redactParameter,
			},
			Response: api.PodList{}, Stream: api.PodChange{},
			serve: (*Server).pods,
		},
		{
			Method: "POST", Path: "/v1/pods",
			Summary: "Create a pod that belongs to its client",
			Details: "With a session, the request can be repeated when its response was lost.",
			Request: api.CreateRequest{}, Response: api.Created{},
			Reasons: []api.ErrorReason{
				api.ReasonInvalid, api.ReasonAlreadyExists, api.ReasonNotAdmitted, api.ReasonConflict, api.ReasonUnresponsive,
			},
			call: (*Server).create,
		},
		{
			Method: "GET", Path: "/v1/pods/{name}", ReadOnly: true,
			Summary: "Get a pod",
			Details: "A file of the pods directory that is not accepted is a pod without a UID. With the parameter uid, the final state " +
				"of a deleted pod is " +
				"returned until the session that created the pod ends.",
			Query: []Parameter{uidParameter, redactParameter}, Response: api.Pod{}, Reasons: []api.ErrorReason{api.ReasonNotFound},
			call: (*Server).get,
		},
		{
			Method: "DELETE", Path: "/v1/pods/{name}",
			Summary: "Stop a pod, or delete it with its file in the pods directory",
			Details: "The response is sent when the request is saved. A second request can shorten the grace period and add the deletion.",
			Query: []Parameter{
				uidParameter,
				{Name: "grace", Type: Duration, Description: "Grace period. 0s kills the containers. Default: that of the pod."},
				{Name: "delete", Type: Boolean, Description: "Delete the pod after it has terminated."},
				{Name: "keepFile", Type: Boolean, Description: "Keep the file in the pods directory. See `POST /v1/files/suspend`."},
			},
			Response: api.Deletion{}, Reasons: []api.ErrorReason{api.ReasonNotFound, api.ReasonConflict, api.ReasonUnresponsive},
			call: (*Server).stop,
		},
		{
			Method: "POST", Path: "/v1/pods/{name}/start",
			Summary: "Start a pod that was stopped or has completed; it keeps its UID and volumes",
			Query:   []Parameter{uidParameter}, Response: api.Started{}, Reasons: []api.ErrorReason{api.ReasonNotFound, api.ReasonConflict},
			call: (*Server).start,
		},
		{
			Method: "POST", Path: "/v1/pods/{name}/restart",
			Summary: "Restart a pod or one of its containers; the pod keeps its UID and volumes",
			Query: []Parameter{
				uidParameter, {Name: "container", Type: Text, Description: "Container to restart. Default: all."},
			},
			Response: api.Started{}, Reasons: []api.ErrorReason{api.ReasonNotFound, api.ReasonConflict},
			call: (*Server).restart,
		},
	}
}

// linesParameter is the size of the evidence in explanations.
var linesParameter = Parameter{
	Name: "lines", Type: Integer, Description: "Maximum number of log lines of each failed run, up to 1000. Default: 3.",
}

func readEndpoints() []Endpoint {
	return []Endpoint{
		{
			Method: "GET", Path: "/v1/why", ReadOnly: true,
			Summary: "Explain the states of all pods, sorted by name",
			Query:   []Parameter{linesParameter}, Response: api.ExplanationList{},
			call: (*Server).whyAll,
		},
		{
			Method: "GET", Path: "/v1/pods/{name}/why", ReadOnly: true,
			Summary: "Explain the state of a pod, or of the newest deleted pod with the name",
			Query:   []Parameter{linesParameter}, Response: api.Explanation{}, Reasons: []api.ErrorReason{api.ReasonNotFound},
			call: (*Server).why,
		},
		{
			Method: "GET", Path: "/v1/pods/{name}/output", ReadOnly: true,
			Summary: "Read or follow the output of containers",
			Details: "The lines of each container are in order. With follow, the stream continues until the pod is at rest or deleted " +
				"or, with runs=newest, " +
				"until none of the containers runs again.",
			Query: []Parameter{
				uidParameter,
				{Name: "container", Type: Text, Repeated: true, Description: "Container. Default: all."},
				{Name: "runs", Type: Text, Description: "Runs of the containers: `newest` or `previous`. Default: all that are kept."},
				{Name: "follow", Type: Boolean, Description: "Continue with new lines."},
				{Name: "tail", Type: Integer, Description: "Number of lines from the end of each run. Default: all."},
				{Name: "sinceTime", Type: Timestamp, Description: "Omit lines before this time."},
				{
					Name: "untilTime", Type: Timestamp,
					Description: "Omit lines after this time. Cannot be combined with follow.",
				},
				{
					Name: "grep", Type: Text,
					Description: "Omit lines that do not contain this text, in any case, after `tail` and `sinceTime`. Without " +
						"follow, the search in each container ends after 256 MiB of lines or 20 seconds, or four times as much at lines " +
						"that are not later than the first one. Then its last record has `searchStopped`. Lines before " +
						"`sinceTime`, and the time in which the client does not read, do not count.",
				},
				{Name: "from", Type: JSON, Description: "Continue after these positions: an object of Position by container."},
			},
			Stream: api.OutputRecord{}, Reasons: []api.ErrorReason{api.ReasonNotFound},
			serve: (*Server).output,
		},
		{
			Method: "GET", Path: "/v1/events", ReadOnly: true,
			Summary: "Read or follow events, oldest first",
			Details: "The header `Podstead-Instance` of the response is the instance that the sequence numbers belong to.",
			Query: []Parameter{
				{Name: "follow", Type: Boolean, Description: "Continue with new events."},
				redactParameter,
				{Name: "instance", Type: Text, Description: "Instance that `after` is a sequence number of."},
				{Name: "after", Type: Integer, Description: "Omit events up to this sequence number."},
				{Name: "since", Type: Timestamp, Description: "Omit events before this time."},
				{Name: "pod", Type: Text, Description: "Name of the pod. Default: any."},
				uidParameter,
				{Name: "labelSelector", Type: Text, Description: "Label selector, such as `app=web`. Default: any."},
			},
			Stream: api.Event{},
			serve:  (*Server).events,
		},
	}
}

// redactParameter removes the values of secrets.
var redactParameter = Parameter{
	Name: "redact", Type: Boolean,
	Description: "Replace the values of the secrets of the pod in messages. If they cannot be read, what containers have written is " +
		"withheld.",
}

func statsEndpoints() []Endpoint {
	return []Endpoint{
		{
			Method: "GET", Path: "/v1/stats", ReadOnly: true,
			Summary:  "Measure what pods use, in the shape of the kubelet's Summary API (/stats/summary)",
			Details:  "Nothing is measured without a request. A figure that is not known is absent.",
			Query:    []Parameter{{Name: "pod", Type: Text, Repeated: true, Description: "Pod. Default: all."}},
			Response: api.StatsSummary{}, Reasons: []api.ErrorReason{api.ReasonNotFound},
			call: (*Server).stats,
		},
		{
			Method: "GET", Path: "/v1/metrics", ReadOnly: true, Routine: true,
			Summary: "Get all metrics in the text format of Prometheus",
			Details: "The format can be chosen with the header `Accept`. A figure that cannot be read in time is absent. The metrics are " +
				"listed in " +
				"[metrics.md](metrics.md). Prometheus needs a TCP address, see `metrics.address`.",
			Content: metricsType, Reasons: []api.ErrorReason{api.ReasonNotImplemented}, serve: (*Server).metrics,
		},
		{
			Method: "POST", Path: "/v1/redact", Routine: true,
			Summary: "Replace the values of the secrets of all pods in texts, for root",
			Request: api.RedactRequest{}, Response: api.Redacted{},
			call: (*Server).redact,
		},
	}
}

func changeEndpoints() []Endpoint {
	return []Endpoint{
		{
			Method: "POST", Path: "/v1/pods/{name}/ephemeral",
			Summary: "Add an ephemeral container to a running pod",
			Query:   []Parameter{uidParameter}, Request: api.EphemeralRequest{}, Response: api.Created{},
			Reasons: []api.ErrorReason{api.ReasonInvalid, api.ReasonNotFound, api.ReasonConflict},
			call:    (*Server).addEphemeral,
		},
		{
			Method: "PUT", Path: "/v1/pods/{name}/conditions/{type...}",
			Summary: "Set the condition of a readiness gate",
			Details: "The condition type is the rest of the path. It may contain a slash.",
			Query:   []Parameter{uidParameter}, Request: api.ConditionRequest{}, Response: api.Pod{},
			Reasons: []api.ErrorReason{api.ReasonNotFound, api.ReasonConflict},
			call:    (*Server).setCondition,
		},
		{
			Method: "GET", Path: "/v1/pods/{name}/rollout", ReadOnly: true,
			Summary:  "Get the generations of a pod of the pods directory",
			Response: api.Rollout{}, Reasons: []api.ErrorReason{api.ReasonNotFound, api.ReasonNotImplemented, api.ReasonUnresponsive},
			call: (*Server).rollout,
		},
		{
			Method: "POST", Path: "/v1/pods/{name}/rollout/undo",
			Summary: "Make a pod return to an earlier generation",
			Details: "The response is sent before the pod has changed. The file is kept: the pod follows it again when it is changed " +
				"or applied.",
			Request: api.UndoRequest{}, Response: api.Rollout{},
			Reasons: []api.ErrorReason{
				api.ReasonNotFound, api.ReasonConflict, api.ReasonNotAdmitted, api.ReasonNotImplemented, api.ReasonUnresponsive,
			},
			call: (*Server).undoRollout,
		},
	}
}

func fileEndpoints() []Endpoint {
	return []Endpoint{
		{
			Method: "POST", Path: "/v1/files",
			Summary: "Write a pod file to the pods directory",
			Details: "The response is sent when the file is saved and a new pod exists or is refused, before the pod is ready. The " +
				"request can be repeated.",
			Request: api.ApplyRequest{}, Response: api.Applied{},
			Reasons: []api.ErrorReason{
				api.ReasonInvalid, api.ReasonAlreadyExists, api.ReasonNotAdmitted, api.ReasonConflict, api.ReasonNotImplemented,
				api.ReasonUnresponsive,
			},
			call: (*Server).apply,
		},
		{
			Method: "POST", Path: "/v1/files/prune",
			Summary: "Delete pods of the pods directory, with their files",
			Request: api.PruneRequest{}, Response: api.AppliedList{},
			Reasons: []api.ErrorReason{api.ReasonConflict, api.ReasonNotImplemented, api.ReasonUnresponsive},
			call:    (*Server).prune,
		},
		{
			Method: "POST", Path: "/v1/files/suspend",
			Summary: "Make the daemon ignore the pods directory until it stops, for 15 minutes at most",
			Details: "It is for the end of the daemon: pods can be deleted whose files are kept.",
			call:    (*Server).suspendFiles,
		},
	}
}

// sessionProtocol is the protocol of sessions, see package channel.
const sessionProtocol = "WebSocket, subprotocol `v5.channel.k8s.io`"

// streamParameters are those of the streams and the terminal of a session.
var streamParameters = []Parameter{
	{
		Name: "container", Type: Text,
		Description: "Container. Default: the one in the annotation `kubectl.kubernetes.io/default-container`, otherwise the first.",
	},
	{Name: "stdin", Type: Boolean, Description: "Connect standard input, channel 0."},
	{Name: "stdout", Type: Boolean, Description: "Connect standard output, channel 1."},
	{Name: "stderr", Type: Boolean, Description: "Connect standard error, channel 2. Not with tty."},
	{Name: "tty", Type: Boolean, Description: "Use a terminal."},
	{Name: "width", Type: Integer, Description: "Columns of the terminal."},
	{Name: "height", Type: Integer, Description: "Rows of the terminal."},
	uidParameter,
}

func streamEndpoints() []Endpoint {
	return []Endpoint{
		{
			Method: "GET", Path: "/v1/pods/{name}/exec",
			Summary: "Run a command in a container",
			Details: "The status at the end, on channel 3, has the exit code, as in Kubernetes. When the client is lost or the daemon " +
				"stops, the command is killed.",
			Query: append([]Parameter{
				{Name: "command", Type: Text, Repeated: true, Description: "The program and its arguments, one parameter for each."},
			}, streamParameters...),
			Upgrade: sessionProtocol,
			Reasons: []api.ErrorReason{api.ReasonNotFound, api.ReasonNotRunning, api.ReasonTooManySessions, api.ReasonUnresponsive},
			serve:   (*Server).exec,
		},
		{
			Method: "GET", Path: "/v1/pods/{name}/attach",
			Summary: "Attach to the first process of a container",
			Details: "The output starts now. The status at the end has the exit code of the container. The container keeps running when " +
				"the client disconnects.",
			Query: append([]Parameter{
				{
					Name: "fromStart", Type: Boolean,
					Description: "Start with what the container has written before its first client, as far as that is kept: the last 64 " +
						"KiB of a container with stdin or tty. The header `Podstead-Incomplete: true` of the response reports that it " +
						"has written more.",
				},
			}, streamParameters...),
			Upgrade: sessionProtocol,
			Reasons: []api.ErrorReason{api.ReasonNotFound, api.ReasonConflict, api.ReasonNotRunning, api.ReasonTooManySessions},
			serve:   (*Server).attach,
		},
		{
			Method: "GET", Path: "/v1/pods/{name}/portforward",
			Summary: "Connect to a TCP port of the loopback interface of a pod",
			Details: "Each connection is a request. Both directions are channel 0, and each can be closed on its own.",
			Query:   []Parameter{{Name: "port", Type: Integer, Description: "Port, 1 to 65535. Required."}, uidParameter},
			Upgrade: sessionProtocol, Reasons: []api.ErrorReason{api.ReasonNotFound, api.ReasonBadGateway, api.ReasonNotImplemented},
			serve: (*Server).forwardPort,
		},
	}
}

// fileParameters select a file of a container.
var fileParameters = []Parameter{
	{
		Name: "path", Type: Text,
		Description: "Path of the file. A relative path starts in the working directory of the container. Required.",
	},
	{Name: "container", Type: Text, Description: "Container, running or not. Default: as for exec."},
	uidParameter,
}

// copyReasons are those of copies of files.
var copyReasons = []api.ErrorReason{api.ReasonNotFound, api.ReasonFileNotFound, api.ReasonConflict, api.ReasonNotImplemented}

func copyEndpoints() []Endpoint {
	return []Endpoint{
		{
			Method: "GET", Path: "/v1/pods/{name}/files/stat",
			Summary: "Get the attributes of a file of a container; links are followed",
			Query:   fileParameters, Response: api.FileStat{}, Reasons: copyReasons,
			call: (*Server).statFile,
		},
		{
			Method: "GET", Path: "/v1/pods/{name}/files",
			Summary: "Read a file of a container, and all files below it, as a tar stream (application/x-tar)",
			Details: "The trailer `" + api.CopyTrailer +
				"` has the warnings and the error of the copy as JSON. A response without the trailer is incomplete.",
			Query: fileParameters, Reasons: copyReasons, Content: api.TarContent,
			serve: (*Server).readFiles,
		},
		{
			Method: "PUT", Path: "/v1/pods/{name}/files",
			Summary: "Create files in a directory of a container from the tar stream in the body",
			Details: "The body has no maximum size. The request ends when the copy makes no progress for " + copyTimeout.String() + ".",
			Query: append([]Parameter{
				{Name: "preserve", Type: Boolean, Description: "Keep owners, permissions and times. Default: true."},
			}, fileParameters...),
			Response: api.CopyResult{}, Reasons: copyReasons, Body: api.TarContent,
			serve: (*Server).writeFiles,
		},
	}
}

func sessionEndpoints() []Endpoint {
	return []Endpoint{
		{
			Method: "PUT", Path: "/v1/sessions/{id}", Routine: true,
			Summary: "Send a heartbeat of the session of a client that has created pods",
			Reasons: []api.ErrorReason{api.ReasonNotFound},
			call:    (*Server).touch,
		},
		{
			Method: "DELETE", Path: "/v1/sessions/{id}", Routine: true,
			Summary: "End a session: its client needs no final states of deleted pods any more",
			Details: "The pods of the session are not affected.",
			call:    (*Server).endSession,
		},
	}
}

func volumeEndpoints() []Endpoint {
	return []Endpoint{
		{
			Method: "GET", Path: "/v1/volumes", ReadOnly: true,
			Summary:  "List persistent volumes, sorted by name",
			Response: api.VolumeList{},
			call:     (*Server).volumes,
		},
		{
			Method: "DELETE", Path: "/v1/volumes/{name}",
			Summary: "Delete a persistent volume and its data",
			Reasons: []api.ErrorReason{api.ReasonNotFound, api.ReasonConflict},
			call:    (*Server).removeVolume,
		},
		{
			Method: "GET", Path: "/v1/volumes/{name}/files",
			Summary: "Read a persistent volume as a tar stream (application/x-tar)",
			Details: "Its trailer is that of `GET /v1/pods/{name}/files`.",
			Reasons: copyReasons, Content: api.TarContent,
			serve: (*Server).exportVolume,
		},
		{
			Method: "PUT", Path: "/v1/volumes/{name}/files",
			Summary: "Create a persistent volume from the tar stream in the body",
			Details: "No pod that uses it may run. It is not changed if the request fails.",
			Query: []Parameter{
				{Name: "replace", Type: Boolean, Description: "Replace the files of a volume that is not empty. Default: false."},
			},
			Response: api.CopyResult{}, Reasons: copyReasons, Body: api.TarContent,
			serve: (*Server).importVolume,
		},
	}
}
