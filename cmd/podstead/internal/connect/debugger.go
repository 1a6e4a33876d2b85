package connect

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/podstead/podstead/api"
)

// DebuggerImage is the image of a debug container that names none. It has a shell and the usual tools.
const DebuggerImage = "docker.io/library/busybox:1.37"

// Debugger is a debug container.
type Debugger struct {
	Name    string // empty: a new one
	Image   string // empty: DebuggerImage
	Archive string // path of an archive with the image; empty: the image is in an archive of the pod, present or pulled
	Target  string // the container whose processes it sees; empty: none
	Command []string
	Env     []string // NAME=VALUE
	Profile string   // one of [DebuggerProfiles]; empty: the first
	Stdin   bool
	TTY     bool
}

// DebuggerProfiles are the names of security settings, as those of kubectl debug. The first one permits to look into the processes of the
// target, which may have another user. The second has the default settings. The last satisfies the Pod Security Standard of its name.
var DebuggerProfiles = []string{"general", "baseline", "restricted"}

// security returns the security context of the container, empty for the default.
func (c *Debugger) security() (string, error) {
	switch c.Profile {
	case "", "general":
		if c.Target == "" {
			return "", nil
		}
		return `{ capabilities = { add = ["SYS_PTRACE"] } }`, nil
	case "baseline":
		return "", nil
	case "restricted":
		return `{ runAsNonRoot = true, runAsUser = 65534, allowPrivilegeEscalation = false, capabilities = { drop = ["ALL"] }, ` +
				`seccompProfile = { type = "RuntimeDefault" } }`,
			nil
	}
	return "", fmt.Errorf("--profile %q: must be one of %s", c.Profile, strings.Join(DebuggerProfiles, ", "))
}

// Request returns the request that adds the container, and its name.
func (c *Debugger) Request() (q api.EphemeralRequest, name string, err error) {
	if name = c.Name; name == "" {
		name = "debugger-" + uuid.NewString()[:5]
	}
	image := c.Image
	if image == "" {
		image = DebuggerImage
	}
	var b strings.Builder
	fmt.Fprintf(&b, "name = %s\nimage = %s\n", quote(name), quote(image))
	if len(c.Command) > 0 {
		list := make([]string, len(c.Command))
		for i, arg := range c.Command {
			list[i] = quote(arg)
		}
		fmt.Fprintf(&b, "command = [%s]\n", strings.Join(list, ", "))
	}
	// The input of a pipe ends. That of a terminal does not.
	fmt.Fprintf(&b, "stdin = %v\nstdinOnce = %v\ntty = %v\n", c.Stdin, c.Stdin && !c.TTY, c.TTY)
	if c.Target != "" {
		fmt.Fprintf(&b, "targetContainerName = %s\n", quote(c.Target))
	}
	for _, assignment := range c.Env {
		variable, value, ok := strings.Cut(assignment, "=")
		if !ok || variable == "" {
			return q, "", fmt.Errorf("--env %q: must be NAME=VALUE", assignment)
		}
		fmt.Fprintf(&b, "env.%s = %s\n", quote(variable), quote(value))
	}
	security, err := c.security()
	if err != nil {
		return q, "", err
	}
	if security != "" {
		fmt.Fprintf(&b, "securityContext = %s\n", security)
	}
	q = api.EphemeralRequest{File: name, Text: b.String()}
	if c.Archive != "" {
		path, err := filepath.Abs(c.Archive)
		if err != nil {
			return q, "", err
		}
		q.ImageArchives = []string{path}
	}
	return q, name, nil
}

// quote returns a basic string of TOML.
func quote(s string) string {
	text, err := json.Marshal(s)
	if err != nil { // not for a string
		panic(err)
	}
	return strings.ReplaceAll(string(text), "\x7f", `\u007f`)
}

// podWatcher is the part of the API that [AwaitDebugger] uses.
type podWatcher interface {
	Watch(ctx context.Context) iter.Seq2[api.PodChange, error]
}

// StartError reports that a debug container cannot start.
type StartError struct {
	Container string
	Reason    api.Reason
	Message   string
}

// Error returns the reason and the message.
func (e *StartError) Error() string {
	text := fmt.Sprintf("start debug container %q: %s", e.Container, e.Reason)
	if e.Message != "" {
		text += ": " + e.Message
	}
	return text
}

// HintFor returns what a person can do. Archives can be put into the directory.
func (e *StartError) HintFor(dir string) string {
	if e.isImage() {
		return "name another image with --image, its archive with --image-archive FILE, or put busybox.tar into the image directory " + dir
	}
	return ""
}

func (e *StartError) isImage() bool {
	return slices.Contains([]api.Reason{
		api.ReasonErrImagePull, api.ReasonImagePullBackOff, api.ReasonErrImageNeverPull, api.ReasonInvalidImageName,
		api.ReasonImageInspectError, api.ReasonSignatureValidation,
	}, e.Reason)
}

// errDeleted is the error for a pod that was deleted while its debug container was starting.
var errDeleted = errors.New("the pod was deleted")

// AwaitDebugger waits until an ephemeral container has started, and returns its state: running or terminated. The error is a [*StartError]
// if it cannot start for now. The daemon may try again.
func AwaitDebugger(ctx context.Context, pods podWatcher, uid, container string) (api.ContainerState, error) {
	found := false
	for c, err := range pods.Watch(ctx) {
		if err != nil {
			return api.ContainerState{}, err
		}
		if c.Object.Metadata.UID != uid {
			if c.Type == api.Listed && !found {
				return api.ContainerState{}, errDeleted
			}
			continue
		}
		if found = true; c.Type == api.Deleted {
			return api.ContainerState{}, errDeleted
		}
		for _, s := range c.Object.Status.EphemeralContainerStatuses {
			if s.Name != container {
				continue
			}
			if state, err := started(&s); err != nil || state != nil {
				return s.State, err
			}
		}
	}
	return api.ContainerState{}, context.Cause(ctx)
}

// started returns the state of a container that has started, nil if it is starting.
func started(s *api.ContainerStatus) (*api.ContainerState, error) {
	switch w := s.State.Waiting; {
	case s.State.Running != nil || s.State.Terminated != nil:
		return &s.State, nil
	case w == nil || w.Reason == "" || w.Reason == api.ReasonContainerCreating || w.Reason == api.ReasonPodInitializing:
		return nil, nil
	default:
		return nil, &StartError{Container: s.Name, Reason: w.Reason, Message: w.Message}
	}
}

const (
	// toolbox is the last part of the repository of the image that a debug container has by default.
	toolbox = "busybox"
	// importTimeout bounds the wait for an archive in an image directory that the daemon has not imported yet.
	importTimeout  = 30 * time.Second
	importInterval = 200 * time.Millisecond
)

// imageLister are the images of a host. [*api.Client] implements it.
type imageLister interface {
	Images(ctx context.Context) (api.ImageList, error)
}

// FindDebuggerImage returns the image of a debug container that names none: a busybox image in an archive of an image directory, otherwise
// one that is present, otherwise [DebuggerImage]. It waits for the import of busybox.tar in one of the directories.
func FindDebuggerImage(ctx context.Context, images imageLister, dirs ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, importTimeout)
	defer cancel()
	for {
		list, err := images.Images(ctx)
		if err != nil {
			return "", err
		}
		name, held := choose(list.Items)
		if held || !archived(dirs) {
			return name, nil
		}
		select {
		case <-time.After(importInterval):
		case <-ctx.Done():
			return name, nil // the archive may be damaged, or have another image
		}
	}
}

// choose returns an image, and whether it is in an archive of an image directory.
func choose(list []api.Image) (name string, held bool) {
	name = DebuggerImage
	for i := range list {
		img := &list[i]
		if img.Foreign || img.Archive || img.Damaged || !isToolbox(img.Name) {
			continue
		}
		if img.File != "" {
			return img.Name, true
		}
		if img.Name == DebuggerImage || name == DebuggerImage && !isPresent(list, DebuggerImage) {
			name = img.Name
		}
	}
	return name, false
}

func isPresent(list []api.Image, name string) bool {
	for i := range list {
		if list[i].Name == name && !list[i].Foreign && !list[i].Archive {
			return true
		}
	}
	return false
}

// isToolbox reports whether the last part of a repository is busybox.
func isToolbox(name string) bool {
	repo, _, _ := strings.Cut(path.Base(name), "@")
	repo, _, _ = strings.Cut(repo, ":")
	return repo == toolbox
}

// archived reports whether a directory has an archive named busybox.
func archived(dirs []string) bool {
	for _, dir := range dirs {
		for _, extension := range []string{".tar", ".tar.gz", ".tgz", ".tar.zst"} {
			if _, err := os.Stat(filepath.Join(dir, toolbox+extension)); err == nil {
				return true
			}
		}
	}
	return false
}
