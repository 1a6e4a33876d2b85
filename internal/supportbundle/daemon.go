package supportbundle

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/api/client"
	"github.com/podstead/podstead/internal/plain"
	"github.com/podstead/podstead/internal/view"
)

const (
	// maxLog bounds the log of a container in a bundle, in bytes, and maxLine one of its lines.
	maxLog  = 1 << 20
	maxLine = 16 << 10
	// splitLine is the size from which the daemon returns a line in parts.
	splitLine = 1 << 20
	// maxEvents bounds the events.
	maxEvents = 20_000
	// evidenceLines is the number of log lines in explanations.
	evidenceLines = 20
)

// daemonParts adds what the daemon knows.
func (c *collector) daemonParts(ctx context.Context) {
	var pods []api.Pod
	c.part(ctx, "status", func(ctx context.Context) error {
		list, err := c.Client.RedactedPods(ctx)
		pods = list.Items
		return err
	})
	for i := range pods {
		p := &pods[i]
		c.part(ctx, "status of pod "+p.Metadata.Name, func(ctx context.Context) error {
			return c.addYAML(ctx, path.Join("pods", p.Metadata.Name, "pod.yaml"), withoutValues(p))
		})
	}
	c.part(ctx, "events", c.events)
	c.part(ctx, "explanations", c.explanations)
	c.part(ctx, "statistics", func(ctx context.Context) error {
		s, err := c.Client.Stats(ctx)
		if err != nil {
			return err
		}
		return c.addJSON(ctx, "stats.json", s)
	})
	if c.NoLogs {
		return
	}
	if !c.redactor.complete {
		c.note("logs of containers: left out, because values of secrets in them cannot be redacted")
		return
	}
	for i := range pods {
		p := &pods[i]
		if p.Metadata.UID == "" || c.redactor.unreadable[p.Metadata.Name] {
			continue
		}
		for container := range p.Spec.EveryContainer() {
			c.part(ctx, "log of container "+container.Name+" of pod "+p.Metadata.Name,
				func(ctx context.Context) error { return c.log(ctx, p, container.Name) })
		}
	}
}

// withoutValues returns a copy of a pod without the values of inline variables and config maps, which may be confidential. The API has no
// values of secrets.
func withoutValues(p *api.Pod) *api.Pod {
	c := *p
	c.Spec.CloneContainers()
	for container := range c.Spec.EveryContainer() {
		container.Env = slices.Clone(container.Env)
		for n := range container.Env {
			if container.Env[n].Value != "" {
				container.Env[n].Value = plain.Redacted
			}
		}
	}
	c.Spec.ConfigMaps = slices.Clone(c.Spec.ConfigMaps)
	for i := range c.Spec.ConfigMaps {
		data := make(map[string]string, len(c.Spec.ConfigMaps[i].Data))
		for key := range c.Spec.ConfigMaps[i].Data {
			data[key] = plain.Redacted
		}
		c.Spec.ConfigMaps[i].Data = data
	}
	return &c
}

// events adds the newest events, one in each line.
func (c *collector) events(ctx context.Context) error {
	var events []api.Event
	var err error
	for e, failed := range c.Client.Events(ctx, &client.EventQuery{Redact: true}) {
		if failed != nil {
			err = failed
			break
		}
		events = append(events, e)
	}
	if older := len(events) - maxEvents; older > 0 {
		events = events[older:]
		c.note("events: only the newest %d", maxEvents)
	}
	return errors.Join(err, c.addLines(ctx, "events.jsonl", events))
}

// addLines redacts the strings of the elements of a list, and adds it with one element in each line.
func (c *collector) addLines(ctx context.Context, name string, elements any) error {
	redacted, err := c.redactor.value(ctx, elements)
	if err != nil {
		return err
	}
	list, _ := redacted.([]any)
	var b strings.Builder
	for _, e := range list {
		line, failed := json.Marshal(e)
		err = errors.Join(err, failed)
		b.Write(line)
		b.WriteByte('\n')
	}
	return errors.Join(err, c.add(name, []byte(b.String())))
}

// explanations adds why each pod is in its state.
func (c *collector) explanations(ctx context.Context) error {
	lines := evidenceLines
	if c.NoLogs {
		lines = 0
	}
	list, err := c.Client.WhyAll(ctx, lines)
	if err != nil {
		return err
	}
	for i := range list.Items {
		e := &list.Items[i]
		err = errors.Join(err, c.addText(ctx, path.Join("pods", e.Pod, "why.txt"), view.Explanation(e, c.Now)))
	}
	return err
}

// log adds the end of the log of each run of a container.
func (c *collector) log(ctx context.Context, p *api.Pod, container string) error {
	t := tail{}
	split := map[string]bool{} // streams whose next line continues a line
	var err error
	query := client.OutputQuery{UID: p.Metadata.UID, Containers: []string{container}, Tail: &c.Tail}
	for line, failed := range c.Client.Output(ctx, p.Metadata.Name, query) {
		if failed != nil {
			err = failed
			break
		}
		continues := split[line.Stream]
		split[line.Stream] = len(line.Line) >= splitLine
		if continues { // a value of a secret may be in both parts
			continue
		}
		text := line.Line
		if len(text) > maxLine {
			text = text[:maxLine] + "…"
		}
		t.add(fmt.Sprintf("%d %s %s %s", line.Attempt, line.Time.UTC().Format(time.RFC3339Nano), line.Stream, text))
	}
	if t.dropped > 0 {
		c.note("log of container %s of pod %s: only the last %d lines", container, p.Metadata.Name, len(t.lines))
	}
	if len(t.lines) == 0 {
		return err
	}
	return errors.Join(err, c.addText(ctx, path.Join("pods", p.Metadata.Name, "logs", container+".log"), strings.Join(t.lines, "\n")+"\n"))
}

// tail holds the last lines of a text, of at most maxLog bytes.
type tail struct {
	lines   []string
	size    int
	dropped int
}

func (t *tail) add(line string) {
	t.lines = append(t.lines, line)
	t.size += len(line) + 1
	for t.size > maxLog {
		t.size -= len(t.lines[0]) + 1
		t.lines = t.lines[1:]
		t.dropped++
	}
}
