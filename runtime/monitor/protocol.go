package monitor

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/containerd/errdefs"
)

const (
	// Socket is the name of the monitor's socket in its state directory. It is of type SOCK_SEQPACKET: each packet is a JSON document.
	Socket = "monitor.sock"
	// Format is the version of the records in the state directory. A monitor reads those of its own and of the previous one.
	Format = 1
	// maxPacket is the maximum size of a packet in bytes.
	maxPacket = 128 << 10
	// MaxRunOutput is the maximum size of the output of a [Run] that is returned, in bytes.
	MaxRunOutput = 10 << 10
	// maxFiles is the maximum number of file descriptors in a packet: the standard streams of a command.
	maxFiles = 3
)

// operation is the kind of a request.
type operation string

const (
	opHello          operation = "hello"
	opCreate         operation = "create"
	opStart          operation = "start"
	opCreateAndStart operation = "createAndStart"
	opExec           operation = "exec"
	opRun            operation = "run"
	opCancel         operation = "cancel"
	opSignal         operation = "signal"
	opResize         operation = "resize"
	opCloseInput     operation = "closeInput"
	opPids           operation = "pids"
	opDelete         operation = "delete"
	opList           operation = "list"
	opState          operation = "state"
	opLog            operation = "log"
	opReplace        operation = "replace"
	opShutdown       operation = "shutdown"
	opSubscribe      operation = "subscribe"
	opCreateSandbox  operation = "createSandbox"
	opDeleteSandbox  operation = "deleteSandbox"
)

// request is a packet of a client.
type request struct {
	ID   uint64          `json:"id"` // chosen by the client, unique among its requests in progress
	Op   operation       `json:"op"`
	Body json.RawMessage `json:"body,omitempty"`
}

// response is a packet of the monitor: an event, or the answer to a request or a part of it.
type response struct {
	ID    uint64          `json:"id,omitempty"`
	More  bool            `json:"more,omitempty"` // further packets of this answer follow
	Error *Error          `json:"error,omitempty"`
	Body  json.RawMessage `json:"body,omitempty"`
	Event *Event          `json:"event,omitempty"`
}

// Class is what a client can do about an [Error].
type Class string

// The classes.
const (
	ClassInvalid      Class = "InvalidArgument"
	ClassNotFound     Class = "NotFound"
	ClassExists       Class = "AlreadyExists"
	ClassPrecondition Class = "FailedPrecondition"
	ClassDeadline     Class = "DeadlineExceeded"
	ClassUnavailable  Class = "Unavailable"
	// ClassRuntime is an error of the OCI runtime. The message contains its text.
	ClassRuntime Class = "Runtime"
	// ClassInternal is any other error, such as one of the file system.
	ClassInternal Class = "Internal"
)

// Error is an error of the monitor. It wraps the error of package errdefs, or context.DeadlineExceeded, that its class stands for.
type Error struct {
	Class   Class  `json:"class"`
	Message string `json:"message"`
}

// Error returns the message.
func (e *Error) Error() string { return e.Message }

// Unwrap returns the error of package errdefs for the class.
func (e *Error) Unwrap() error {
	switch e.Class {
	case ClassInvalid:
		return errdefs.ErrInvalidArgument
	case ClassNotFound:
		return errdefs.ErrNotFound
	case ClassExists:
		return errdefs.ErrAlreadyExists
	case ClassPrecondition:
		return errdefs.ErrFailedPrecondition
	case ClassDeadline:
		return context.DeadlineExceeded
	case ClassUnavailable:
		return errdefs.ErrUnavailable
	case ClassRuntime:
		return errdefs.ErrUnknown
	case ClassInternal:
		return errdefs.ErrInternal
	}
	return errdefs.ErrUnknown
}

func errorf(c Class, format string, args ...any) *Error {
	return &Error{Class: c, Message: fmt.Sprintf(format, args...)}
}

// Hello describes the monitor.
type Hello struct {
	Version string    `json:"version"`
	Format  int       `json:"format"`
	PID     int       `json:"pid"`
	Keeper  int       `json:"keeper"` // process ID
	Started time.Time `json:"started"`
	// Monitors is how many monitors have used the state directory since boot or the last stop, with this one.
	Monitors int `json:"monitors"`
	// Sequence is the number of the newest event.
	Sequence uint64 `json:"sequence"`
}

// Mount is a mount of the root file system, as containerd describes it.
type Mount struct {
	Type    string   `json:"type"`
	Source  string   `json:"source,omitempty"`
	Target  string   `json:"target,omitempty"`
	Options []string `json:"options,omitempty"`
}

// Runtime is how the OCI runtime is called.
type Runtime struct {
	Binary        string `json:"binary"` // name or path
	Root          string `json:"root"`   // its directory for states of containers
	SystemdCgroup bool   `json:"systemdCgroup,omitempty"`
	// Filters is the directory of compiled seccomp filters; empty: none are kept.
	Filters string `json:"filters,omitempty"`
}

// Create describes a container.
type Create struct {
	ID      string `json:"id"`
	Sandbox string `json:"sandbox,omitempty"`
	// Bundle is the absolute path of the bundle, with config.json. The deletion of the container removes it. If the container cannot be
	// created, or is lost, it stays.
	Bundle  string  `json:"bundle"`
	Rootfs  []Mount `json:"rootfs,omitempty"` // mounted on rootfs in the bundle
	Runtime Runtime `json:"runtime"`
	// Terminal must be the value of the specification.
	Terminal bool `json:"terminal,omitempty"`
	// Output is the URI of a [ocibundle.Output]; empty: output is discarded, and there is no input.
	Output string `json:"output,omitempty"`
	// UID and GID own the FIFOs of the container: the root of its user namespace.
	UID int `json:"uid,omitempty"`
	GID int `json:"gid,omitempty"`
	// PinPID is the path of a file to which the PID namespace of the container is bind-mounted; empty: none.
	PinPID string `json:"pinPID,omitempty"`
}

// Phase is the phase of a container.
type Phase string

// The phases.
const (
	Creating Phase = "creating" // only in records
	Created  Phase = "created"
	Running  Phase = "running"
	Exited   Phase = "exited"
)

// Exit is how a process has exited.
type Exit struct {
	// Code is the exit code, or 128 plus the number of the signal that terminated the process. If Unknown is set it is 255.
	Code uint32    `json:"code"`
	Time time.Time `json:"time"`
	// Unknown is true if the process exited while no monitor and no keeper was running, and the kernel does not keep exit codes.
	Unknown bool `json:"unknown,omitempty"`
	// OOMKilled is true if the kernel OOM-killed a process of the container, whose peak memory usage was MemoryPeak bytes, 0 if unknown.
	OOMKilled  bool  `json:"oomKilled,omitempty"`
	MemoryPeak int64 `json:"memoryPeak,omitempty"`
}

// Process is a command in a container that was started by [Client.Exec].
type Process struct {
	ID   string `json:"id"`
	PID  int    `json:"pid"`
	Exit *Exit  `json:"exit,omitempty"`
	// Session is the session of the command's processes if the command itself does not lead it, otherwise 0.
	Session int `json:"session,omitempty"`
}

// Container is the state of a container.
type Container struct {
	ID        string    `json:"id"`
	Sandbox   string    `json:"sandbox,omitempty"`
	Bundle    string    `json:"bundle"`
	Phase     Phase     `json:"phase"`
	PID       int       `json:"pid"`
	Terminal  bool      `json:"terminal,omitempty"`
	Exit      *Exit     `json:"exit,omitempty"`
	Processes []Process `json:"processes,omitempty"`
}

// Exec describes a command in a container.
type Exec struct {
	Container string `json:"container"`
	ID        string `json:"id"` // unique in the container
	// Process is the OCI process in JSON. It may contain secrets: it is in a file of mode 0600 on tmpfs while the OCI runtime starts it.
	Process json.RawMessage `json:"process"`
	// ConsoleSocket is the path of the socket that receives the terminal, if the process has one. It belongs to the client.
	ConsoleSocket string `json:"consoleSocket,omitempty"`
}

// Run describes a command of which only the result is of interest.
type Run struct {
	Container string          `json:"container"`
	Process   json.RawMessage `json:"process"` // as in Exec, without terminal
	// Mark is the value of [proctree.MarkVariable] in the environment of the process. All processes with it are killed at the timeout.
	Mark string `json:"mark"`
	// Timeout is how long the command may run, with its start; 0: until the request is cancelled.
	Timeout time.Duration `json:"timeout,omitempty"`
	// MaxOutput bounds the output that is returned, in bytes, at most MaxRunOutput.
	MaxOutput int `json:"maxOutput,omitempty"`
}

// RunResult is the result of a [Run].
type RunResult struct {
	Code uint32 `json:"code"`
	// Output is the start of standard output followed by standard error.
	Output []byte `json:"output,omitempty"`
}

// Signal describes a signal.
type Signal struct {
	Container string `json:"container"`
	Exec      string `json:"exec,omitempty"` // a command; empty: the first process
	Signal    int    `json:"signal"`
	All       bool   `json:"all,omitempty"` // to all processes of the container
}

// target selects a container, or a command in it.
type target struct {
	Container string `json:"container"`
	Exec      string `json:"exec,omitempty"`
}

// Size is the size of a terminal in characters.
type Size struct {
	Width  uint16 `json:"width"`
	Height uint16 `json:"height"`
}

type resize struct {
	Container string `json:"container"`
	Size
}

// logChange changes the log of a container.
type logChange struct {
	Container string `json:"container"`
	Output    string `json:"output"` // as in Create, with the same path
}

// sandbox describes a sandbox.
type sandbox struct {
	Name  string  `json:"name"`
	Pause *Create `json:"pause,omitempty"` // its process, which is created and started
}

type cancelled struct {
	Request uint64 `json:"request"`
}

type replacement struct {
	Program string `json:"program"`
}

type list struct {
	Containers []Container `json:"containers,omitempty"`
	Sandboxes  []string    `json:"sandboxes,omitempty"`
	Sequence   uint64      `json:"sequence"`
}

type pids struct {
	PIDs []int `json:"pids"`
}

// EventKind is the kind of an [Event].
type EventKind string

// The kinds.
const (
	// EventExited: a container or a command has exited. The output of a container is in its log, unless that took too long. The next
	// monitor may repeat it.
	EventExited EventKind = "Exited"
	// EventChanged: a container was created or started, possibly by a request of another connection.
	EventChanged EventKind = "Changed"
	// EventDeleted: a container was deleted, likewise.
	EventDeleted EventKind = "Deleted"
	// EventOOM: the kernel has OOM-killed a process of a container, with cgroup v1 also if the container was out of memory.
	EventOOM EventKind = "OOM"
	// EventLost: a container or a command that was being created when the monitor was killed does not exist.
	EventLost EventKind = "Lost"
	// EventFailed: an operation for one container failed, such as writing its log. The container keeps running.
	EventFailed EventKind = "Failed"
	// EventRestarted: the monitor was started again. It is the first event of each monitor after one that was killed or replaced.
	EventRestarted EventKind = "MonitorRestarted"
)

// Event is what a monitor reports on its own.
type Event struct {
	Sequence  uint64    `json:"sequence"` // increases by 1 within one monitor
	Kind      EventKind `json:"kind"`
	Container string    `json:"container,omitempty"`
	Sandbox   string    `json:"sandbox,omitempty"`
	Exec      string    `json:"exec,omitempty"`
	PID       int       `json:"pid,omitempty"`
	Exit      *Exit     `json:"exit,omitempty"`
	Message   string    `json:"message,omitempty"`
	// State is the state of the container after an [EventChanged].
	State *Container `json:"state,omitempty"`
}
