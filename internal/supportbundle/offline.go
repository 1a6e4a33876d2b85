package supportbundle

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/podstead/podstead/internal/crilog"
	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor/event"
)

// savedPod is what a bundle needs of the state file of a pod.
type savedPod struct {
	Pod   *spec.Pod `json:"pod"`
	Facts struct {
		UID string `json:"uid"`
	} `json:"facts"`
}

// fileParts adds the events and the logs that are in files, for a host whose daemon does not run. Those of pods whose secrets are not known
// are left out: of their events, only what has happened is in the bundle.
func (c *collector) fileParts(ctx context.Context) {
	if !c.redactor.complete {
		c.note("events and logs of containers: left out, because values of secrets in them cannot be redacted")
		return
	}
	var pods []savedPod
	c.part(ctx, "pods", func(ctx context.Context) (err error) {
		pods, err = within(ctx, func(context.Context) ([]savedPod, error) { return readPods(filepath.Join(c.Config.StateDir, "pods")) })
		return err
	})
	known := map[string]bool{} // UIDs
	for i := range pods {
		p := &pods[i]
		if missing := unknownSecret(p.Pod, c.Config.ConfigDir); missing != "" {
			c.note("pod %s: its logs and messages are withheld, because its secret %s cannot be read", p.Pod.Name, missing)
			continue
		}
		known[p.Facts.UID] = true
	}
	c.part(ctx, "events", func(ctx context.Context) error { return c.savedEvents(ctx, known) })
	if c.NoLogs {
		return
	}
	for i := range pods {
		if p := &pods[i]; known[p.Facts.UID] {
			c.part(ctx, "logs of pod "+p.Pod.Name, func(ctx context.Context) error { return c.savedLogs(ctx, p) })
		}
	}
}

// readPods reads the state files of pods. The error lists those that cannot be read.
func readPods(dir string) (pods []savedPod, err error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil {
		return nil, err
	}
	var errs []error
	for _, file := range files {
		text, err := readFile(file, maxSecretFile)
		p := savedPod{}
		if err == nil {
			err = json.Unmarshal(text, &p)
		}
		switch {
		case err != nil:
			errs = append(errs, fmt.Errorf("%s: %w", file, err))
		case p.Pod != nil && p.Facts.UID != "" && filepath.Base(p.Facts.UID) == p.Facts.UID && filepath.Base(p.Pod.Name) == p.Pod.Name:
			pods = append(pods, p)
		}
	}
	return pods, errors.Join(errs...)
}

// unknownSecret returns the name of a secret of a pod whose values are not in files of this host, such as a credential of the service;
// empty: there is none. [localSecrets] has the values of the others.
func unknownSecret(p *spec.Pod, configDir string) string {
	for name, required := range p.SecretNames() {
		i := slices.IndexFunc(p.Secrets, func(s spec.Secret) bool { return s.Name == name })
		file := filepath.Join(configDir, "secrets", name)
		if i >= 0 {
			if p.Secrets[i].CredentialName() == "" {
				continue // in the state file
			}
			if p.Secrets[i].CredentialFile != "" {
				return name
			}
			file = filepath.Join("/run/credentials/podstead.service", p.Secrets[i].Credential)
		}
		if _, err := os.Stat(file); err != nil && (required || !errors.Is(err, fs.ErrNotExist)) {
			return name
		}
	}
	return ""
}

// savedEvents adds the events of the journal, one in each line. Those of other pods than the known ones have no message.
func (c *collector) savedEvents(ctx context.Context, known map[string]bool) error {
	dir := filepath.Join(c.Config.StateDir, "events")
	events, err := within(ctx, func(context.Context) ([]event.Event, error) {
		if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
			return nil, nil
		}
		j, err := event.NewDirJournal(dir)
		if err != nil {
			return nil, err
		}
		return j.Load()
	})
	if len(events) == 0 {
		return err
	}
	if older := len(events) - maxEvents; older > 0 {
		events = events[older:]
		c.note("events: only the newest %d", maxEvents)
	}
	for i := range events {
		if e := &events[i]; e.Pod != "" && !known[e.UID] {
			e.Message, e.Fields = "(event)", nil
		}
	}
	return errors.Join(err, c.addLines(ctx, "events.jsonl", events))
}

// savedLogs adds the end of the logs of the containers of a pod, by the numbers of their runs.
func (c *collector) savedLogs(ctx context.Context, p *savedPod) error {
	dir := filepath.Join(c.Config.LogDir, spec.FileName(p.Pod.Name)+"_"+p.Facts.UID)
	var errs []error
	for container := range p.Pod.OwnContainers() {
		name := container.Name
		t, err := within(ctx, func(ctx context.Context) (tail, error) { return readLogs(ctx, filepath.Join(dir, name), c.Tail) })
		if t.dropped > 0 {
			c.note("log of container %s of pod %s: only the last %d lines", name, p.Pod.Name, len(t.lines))
		}
		if len(t.lines) > 0 {
			text := strings.Join(t.lines, "\n") + "\n"
			err = errors.Join(err, c.addText(ctx, path.Join("pods", p.Pod.Name, "logs", name+".log"), text))
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// readLogs returns the last lines of each run of a container, with the number of the run as in a bundle of a daemon that runs.
func readLogs(ctx context.Context, dir string, lines int) (t tail, err error) {
	names, err := crilog.Names(dir)
	if err != nil {
		return t, err
	}
	var runs []int
	for _, name := range names {
		number, isLog := strings.CutSuffix(name, ".log")
		if run, err := strconv.Atoi(number); isLog && err == nil {
			runs = append(runs, run)
		}
	}
	slices.Sort(runs)
	for _, run := range runs {
		continues := map[crilog.Stream]bool{}
		log := filepath.Join(dir, strconv.Itoa(run)+".log")
		for e, failed := range crilog.Read(ctx, log, crilog.ReadOptions{Tail: lines, Complete: true}) {
			if failed != nil {
				return t, failed
			}
			part := continues[e.Stream]
			continues[e.Stream] = e.Partial
			if part || e.Skipped != nil { // a value of a secret may be in both parts
				continue
			}
			text := string(e.Text)
			if len(text) > maxLine {
				text = text[:maxLine] + "…"
			}
			t.add(fmt.Sprintf("%d %s %s %s", run+1, e.Time.UTC().Format(time.RFC3339Nano), e.Stream, text))
		}
	}
	return t, nil
}
