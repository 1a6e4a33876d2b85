package doctor

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/podstead/podstead/internal/config"
	"github.com/podstead/podstead/internal/daemon"
	"github.com/podstead/podstead/internal/daemon/bundleundo"
	"github.com/podstead/podstead/internal/daemon/images"
	"github.com/podstead/podstead/internal/daemon/notify"
	"github.com/podstead/podstead/internal/statefile"
	"github.com/podstead/podstead/runtime/engine"
	"github.com/podstead/podstead/runtime/namespace"
	"github.com/podstead/podstead/runtime/network"
	"github.com/podstead/podstead/supervisor/event"
	"github.com/podstead/podstead/supervisor/podfiles"
	"github.com/podstead/podstead/supervisor/schedule"
	"github.com/podstead/podstead/supervisor/state"
)

// stateFile is a kind of file that the daemon writes and reads again after it or the host has restarted.
type stateFile struct {
	// path begins with STATE or RUN and is a pattern of [filepath.Match]. A trailing "/..." means everything below a directory.
	path string
	// content describes the content and its format.
	content string
	// format is nil for files of containerd, runc and containers, and for files without fields.
	format *statefile.Format
	// lost is what follows if the file is lost.
	lost string
}

const (
	taskDir      = "RUN/engine/io.containerd.runtime.v2.task/podstead/*"
	sandboxDir   = "RUN/engine/io.containerd.sandbox.controller.v1.shim/podstead/*"
	maxStateFile = 16 << 20 // the maximum size of a file that is checked, in bytes
)

// stateFiles returns all kinds of files.
func stateFiles() []stateFile { return slices.Concat(persistentFiles(), volatileFiles()) }

// persistentFiles are the files in the state directory.
func persistentFiles() []stateFile {
	return []stateFile{
		{
			"STATE/pods/*.json", "state of a pod: definition, inline secrets, facts", &state.Format,
			"the pod is adopted from its file in the pods directory, or stopped as orphaned",
		},
		{"STATE/pods/*.json.unreadable", "damaged state of a pod", nil, "nothing"},
		{
			"STATE/pods/*/volumes/...", "`emptyDir` volumes, and copies of config maps and secrets", nil,
			"the data of the pod's `emptyDir` volumes",
		},
		{"STATE/pods/*/etc/...", "files of `/etc` of containers", nil, "written again when the sandbox starts"},
		{"STATE/pods/*/messages/...", "termination messages of containers", nil, "the messages"},
		{"STATE/pods/*/*", "marks of volumes that are set up", nil, "the volumes are set up again"},
		{
			"STATE/generations/*.json", "generations of a pod of the pods directory: definitions, inline secrets, outcomes",
			&podfiles.HistoryFormat, "earlier generations cannot be restored, and a pod that was rolled back is updated to its file",
		},
		{"STATE/generations/*.json.unreadable", "damaged generations", nil, "nothing"},
		{
			"STATE/schedules/*.json", "schedule of a pod: the time up to which runs were started", &schedule.Format,
			"times count from the start of the daemon: a run that was missed is left out",
		},
		{"STATE/schedules/*.json.unreadable", "damaged state of a schedule", nil, "nothing"},
		{"STATE/events/*.jsonl", "journal: events of a pod, one per line", &event.Format, "the history of the pod"},
		{"STATE/quarantine/*.json", "pod that may have crashed the daemon", &state.QuarantineFormat, "the pod is supervised again"},
		{
			"STATE/reboots.json", "reboots for pods that stayed unready", &daemon.RebootFormat,
			"the reboots do not count for `reboot.maxPerDay`",
		},
		{"STATE/booted", "boot ID of the host, while a daemon runs", nil, "a power loss is not reported"},
		{"STATE/notify/*.json", "notifier: events to be sent, and the results", &notify.Format, "the events are not sent"},
		{"STATE/network.json", "subnets, and the last addresses of pods", &network.StateFormat, "pods may get other addresses"},
		{"STATE/network.json.damaged", "damaged file", nil, "nothing"},
		{"STATE/image-use.json", "when images were used", &images.UseFormat, "all images count as new"},
		{
			"STATE/bundle-undo.json", "files as they were before the bundle that is being applied, also those of secrets",
			&bundleundo.Format, "a bundle that was interrupted is not undone",
		},
		{"STATE/bundle.lock", "lock of the client that applies a bundle, empty", nil, "nothing"},
		{
			"STATE/users.json", "ID ranges of pods with a user namespace", &namespace.IDsFormat,
			"pods get other ranges after they are created again",
		},
		{"STATE/podstead.toml", "copy of the last valid configuration file", nil, "the daemon does not start if the file is invalid"},
		{"STATE/volumes/...", "persistent volumes, and in `.project-NAME` the project of the pod that has created each", nil, "the data"},
		{"STATE/reserve", "space that the daemon releases when the disk is full", nil, "reserved again"},
		{"STATE/daemon.log", "log of daemons that are started on demand", nil, "the log"},
		{"STATE/daemon.old.log", "earlier log", nil, "the log"},
		{"STATE/engine/images.json", "copy of the list of images", &engine.ImageListFormat, "written again when the daemon starts"},
		{"STATE/engine/images-lost.json", "images to be restored", &engine.ImageListFormat, "the images are pulled or imported again"},
		{"STATE/engine/damaged/reports.json", "reports of damaged files", &engine.DamageFormat, "the reports"},
		{"STATE/engine/damaged/*", "damaged files", nil, "nothing"},
		{"STATE/engine/lock", "lock of the running daemon, empty", nil, "nothing"},
		{
			"STATE/images/...", "image archives that the administrator puts there, see `images.dir`", nil,
			"the images of the archives are not kept any more",
		},
		{"STATE/engine/clean", "mark of a daemon that was not killed, empty", nil, "all files of the engine are checked"},
		{"STATE/engine/io.containerd.*/...", "containerd: images, layers, records", nil, "see [recovery](../design/recovery.md)"},
	}
}

// volatileFiles are the files in the directory for runtime state.
func volatileFiles() []stateFile {
	return []stateFile{
		{
			"RUN/pods/*.json", "checkpoint: starts, probe results, sent stop signals", &state.CheckpointFormat,
			"probes start again, and a process may get a second stop signal",
		},
		{"RUN/network.json", "addresses and host ports in use", &network.LeaseFormat, "read from the kernel"},
		{"RUN/daemon.json", "process of the daemon", &daemon.LifeFormat, "an OOM kill of the daemon is not noticed"},
		{"RUN/crash", "output of a crash of the daemon", nil, "the crash accuses no pod"},
		{"RUN/handling/*", "pods that are being handled", nil, "a crash of the daemon accuses no pod"},
		{"RUN/podstead.sock.stopped", "instance of a daemon that was stopped", nil, "clients start a new daemon"},
		{"RUN/process/...", "arguments and variables with secrets, until the monitor has read them", nil, "the container fails to start"},
		{
			"RUN/engine/records.db", "copy of the records of containers (bbolt)", nil,
			"containers are killed if the records of the engine are damaged too",
		},
		{"RUN/engine/*", "containerd: locks and sockets", nil, "nothing"},
		{"RUN/engine/unresponsive/...", "bundles of shims that do not respond", nil, "the containers are killed"},
		{"RUN/engine/runc/...", "runc: containers", nil, "the container is killed and starts again"},
		{taskDir + "/...", "pods of shims: bundle of a container", nil, "the container is killed and starts again"},
		{sandboxDir + "/...", "pods of shims: bundle of a sandbox", nil, "the pod is killed and starts again"},
		{"RUN/engine/bundles/...", "the monitor: bundles of containers and sandboxes", nil, "commands in the container fail"},
		{
			"RUN/engine/monitor/...", "the monitor: containers, and output that is not yet in their logs", nil,
			"the container is killed and starts again",
		},
	}
}

// stateVersions reports the files of a later version of Podstead.
func stateVersions(c *config.Config) result {
	files, reason := newerFiles(c)
	if len(files) == 0 {
		return ok("no files of a later version")
	}
	detail := strings.Join(files[:min(len(files), maxFiles)], ", ")
	if more := len(files) - maxFiles; more > 0 {
		detail += fmt.Sprintf(" and %d more", more)
	}
	return result{
		Warn, fmt.Sprintf("%s: %v", detail, reason), "install that version again; its pods keep running without supervision until then",
	}
}

// newerFiles returns the paths of the files that only a later version understands, with the error that says so.
func newerFiles(c *config.Config) (files []string, reason error) {
	for _, f := range stateFiles() {
		if f.format == nil {
			continue
		}
		paths, err := filepath.Glob(strings.NewReplacer("STATE/", c.StateDir+"/", "RUN/", c.RunDir+"/").Replace(f.path))
		if err != nil {
			continue // the directory has special characters
		}
		for _, path := range paths {
			if err := checkVersion(path, *f.format); errors.Is(err, statefile.ErrNewer) {
				files, reason = append(files, path), err
			}
		}
	}
	return files, reason
}

// checkVersion checks the version of a file, or of the newest lines of a journal.
func checkVersion(path string, f statefile.Format) error {
	file, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return err
	}
	text, err := io.ReadAll(io.LimitReader(file, maxStateFile))
	if err = errors.Join(err, file.Close()); err != nil || !strings.HasSuffix(path, ".jsonl") {
		return errors.Join(err, f.Check(text))
	}
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, `{"version":`) || strings.HasPrefix(line, `{"minReader":`) {
			err = f.Check([]byte(line))
		}
	}
	return err
}
