package show

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/internal/plain"
	"github.com/podstead/podstead/internal/view"
)

// maxEvents is the number of events on a page, the newest ones.
const maxEvents = 20

// Description is what a page describes.
type Description struct {
	Pod api.Pod
	// Why is the explanation of the pod's state; nil: it is not known.
	Why *api.Explanation
	// Stats is what the pod uses; nil: it is not known.
	Stats *api.PodStats
	// Events are events of the pod, oldest first.
	Events []api.Event
}

// Describe writes the page. Times are in the time zone of now. Hidden characters are escaped.
func Describe(w io.Writer, in *Description, now time.Time) error {
	p := &page{now: now}
	p.pod(in)
	p.containers("Init containers", in.Pod.Spec.InitContainers, in.Pod.Status.InitContainerStatuses, in)
	p.containers("Containers", in.Pod.Spec.Containers, in.Pod.Status.ContainerStatuses, in)
	p.containers("Ephemeral containers", in.Pod.Spec.EphemeralContainers, in.Pod.Status.EphemeralContainerStatuses, in)
	p.conditions(in.Pod.Status.Conditions)
	p.volumes(&in.Pod)
	p.events(in.Events)
	return p.write(w)
}

// page collects lines. The cells of a line are separated by tabs. A line without a tab ends a block of aligned lines.
type page struct {
	now    time.Time
	lines  []string
	indent string
}

// add adds a line with a name and a value, unless the value is empty.
func (p *page) add(name, value string) {
	if value != "" {
		p.row(name+":", value)
	}
}

// list adds a line for each value. The first has the name.
func (p *page) list(name string, values []string) {
	for i, value := range values {
		if i == 0 {
			name += ":"
		} else {
			name = ""
		}
		p.row(name, value)
	}
}

// row adds a line of cells.
func (p *page) row(cells ...string) {
	for i := range cells {
		cells[i] = strings.ReplaceAll(plain.Text(cells[i]), "\t", `\t`)
	}
	p.lines = append(p.lines, p.indent+strings.Join(cells, "\t"))
}

// head adds a line above indented lines.
func (p *page) head(text string) { p.lines = append(p.lines, p.indent+plain.Text(text)+":") }

// indented adds the lines of add, indented.
func (p *page) indented(add func()) {
	before := p.indent
	p.indent += "  "
	add()
	p.indent = before
}

// write aligns the cells.
func (p *page) write(w io.Writer) error {
	var aligned strings.Builder
	t := tabwriter.NewWriter(&aligned, 0, 0, 2, ' ', 0)
	for _, line := range p.lines {
		fmt.Fprintln(t, line)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	for line := range strings.Lines(aligned.String()) {
		if _, err := fmt.Fprintln(w, strings.TrimRight(line, " \n")); err != nil {
			return err
		}
	}
	return nil
}

// at returns a time and how long ago it was.
func (p *page) at(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return fmt.Sprintf("%s (%s ago)", t.In(p.now.Location()).Format(time.RFC3339), view.Age(p.now.Sub(t)))
}

// pod adds what concerns the pod as a whole.
func (p *page) pod(in *Description) {
	pod := &in.Pod
	p.add("Name", pod.Metadata.Name)
	p.add("UID", pod.Metadata.UID)
	p.add("Status", view.Status(pod))
	if in.Why != nil {
		p.add("Why", in.Why.Text)
	}
	p.add("Reason", string(pod.Status.Reason))
	p.add("Message", pod.Status.Message)
	p.add("File", pod.Status.File)
	if pod.Metadata.UID == "" { // the file is refused
		return
	}
	if pod.Status.File == "" {
		p.add("Owner", pod.Status.Owner)
	}
	p.add("Ready", view.Ready(pod))
	p.add("Restarts", view.Restarts(pod, p.now))
	p.add("Created", p.at(pod.Metadata.CreationTimestamp))
	if at := pod.Status.StoppedAt; !at.IsZero() {
		p.add("Stopped", p.at(at)+", requested by "+pod.Status.StoppedBy)
	}
	if end := pod.Metadata.DeletionTimestamp; end != nil {
		p.add("Terminating", "until "+end.In(p.now.Location()).Format(time.RFC3339))
	}
	p.list("Labels", pairs(pod.Metadata.Labels))
	p.list("Annotations", pairs(pod.Metadata.Annotations))
	p.add("IP", addresses(pod.Status.PodIPs))
	p.add("Host IP", addresses(pod.Status.HostIPs))
	p.add("Restart policy", string(pod.Spec.RestartPolicy))
	p.add("Grace period", pod.Spec.TerminationGracePeriodSeconds.Duration().String())
	p.add("QoS class", string(pod.Status.QOSClass))
	p.list("Waits for", pod.Spec.WaitFor)
	if in.Stats != nil {
		p.list("Uses", podUsage(in.Stats, p.now))
	}
}

// pairs returns sorted KEY=VALUE.
func pairs(m map[string]string) []string {
	var list []string
	for _, key := range slices.Sorted(maps.Keys(m)) {
		list = append(list, key+"="+m[key])
	}
	return list
}

func addresses(ips []api.PodIP) string {
	var list []string
	for _, ip := range ips {
		list = append(list, ip.IP)
	}
	return strings.Join(list, ", ")
}

// conditions adds a table of the conditions.
func (p *page) conditions(list []api.Condition) {
	if len(list) == 0 {
		return
	}
	p.head("Conditions")
	p.indented(func() {
		p.row("TYPE", "STATUS", "SINCE", "REASON")
		for _, c := range list {
			since := ""
			if !c.LastTransitionTime.IsZero() {
				since = view.Age(p.now.Sub(c.LastTransitionTime))
			}
			reason := string(c.Reason)
			if c.Message != "" {
				reason = strings.TrimPrefix(reason+": "+c.Message, ": ")
			}
			p.row(string(c.Type), c.Status, since, reason)
		}
	})
}

// events adds the newest events.
func (p *page) events(list []api.Event) {
	if len(list) == 0 {
		p.lines = append(p.lines, "Events: none")
		return
	}
	p.head("Events")
	p.indented(func() {
		if older := len(list) - maxEvents; older > 0 {
			p.lines = append(p.lines, fmt.Sprintf("%s(%d older ones: podstead events %s)", p.indent, older, list[older].Pod))
			list = list[older:]
		}
		p.row("AGE", "TYPE", "REASON", "CONTAINER", "MESSAGE")
		for i := range list {
			e := &list[i]
			p.row(view.Age(p.now.Sub(e.Time)), string(e.Level), e.Reason, e.Container, e.Message)
		}
	})
}
