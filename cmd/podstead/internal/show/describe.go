package show

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/internal/plain"
	"github.com/podstead/podstead/internal/view"
	"github.com/podstead/podstead/spec"
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
	p.add("Runtime class", pod.Spec.RuntimeClassName)
	if limit := pod.Spec.PidsLimit; limit != nil {
		p.add("Process limit", strconv.FormatInt(*limit, 10))
	}
	if size := pod.Spec.ShmSize; size != nil {
		p.add("/dev/shm", size.String())
	}
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

// containers adds the containers of a role.
func (p *page) containers(title string, list []spec.Container, status []api.ContainerStatus, in *Description) {
	if len(list) == 0 {
		return
	}
	p.head(title)
	p.indented(func() {
		for i := range list {
			p.head(list[i].Name)
			p.indented(func() {
				at := slices.IndexFunc(status, func(s api.ContainerStatus) bool { return s.Name == list[i].Name })
				if at >= 0 {
					p.status(&status[at])
				} else {
					p.add("Image", list[i].Image)
				}
				p.definition(&list[i])
				p.list("Uses", containerUsage(in.Stats, list[i].Name, p.now))
				p.probes(&list[i], in)
			})
		}
	})
}

// status adds what is known of the runs of a container.
func (p *page) status(s *api.ContainerStatus) {
	p.state("State", s.State)
	p.state("Last state", s.LastState)
	p.add("Ready", strconv.FormatBool(s.Ready))
	p.add("Restarts", strconv.Itoa(s.RestartCount))
	p.add("Image", s.Image)
	p.add("Image ID", s.ImageID)
	p.add("Container ID", s.ContainerID)
}

// state adds a state of a container, with its exit code and its times.
func (p *page) state(name string, s api.ContainerState) {
	switch {
	case s.Waiting != nil:
		p.add(name, strings.TrimSuffix("Waiting: "+string(s.Waiting.Reason), ": "))
		p.add("  Message", s.Waiting.Message)
	case s.Running != nil:
		p.add(name, "Running since "+p.at(s.Running.StartedAt))
	case s.Terminated != nil:
		t := s.Terminated
		p.add(name, fmt.Sprintf("Terminated: %s, exit code %d", t.Reason, t.ExitCode))
		p.add("  Started", p.at(t.StartedAt))
		p.add("  Finished", p.at(t.FinishedAt))
		p.add("  Message", strings.TrimRight(t.Message, "\n"))
	}
}

// definition adds what the pod file says about a container.
func (p *page) definition(c *spec.Container) {
	p.add("Command", spec.CommandLine(c.Command))
	p.add("Arguments", spec.CommandLine(c.Args))
	var ports []string
	for _, port := range c.Ports {
		ports = append(ports, portText(port))
	}
	p.list("Ports", ports)
	p.add("Requests", resources(c.Resources.Requests))
	p.add("Limits", resources(c.Resources.Limits))
	var ulimits []string
	for i := range c.Ulimits {
		ulimits = append(ulimits, c.Ulimits[i].String())
	}
	p.add("Ulimits", strings.Join(ulimits, ", "))
	if c.Init {
		p.add("Init process", spec.InitPath)
	}
	var env []string
	for _, from := range c.EnvFrom {
		switch {
		case from.ConfigMapRef != nil:
			env = append(env, "all keys of config map "+from.ConfigMapRef.Name)
		case from.SecretRef != nil:
			env = append(env, "all keys of secret "+from.SecretRef.Name)
		}
	}
	for _, v := range c.Env {
		env = append(env, v.Name+"="+variable(v))
	}
	p.list("Environment", env)
	var mounts []string
	for _, m := range c.VolumeMounts {
		mounts = append(mounts, mountText(m))
	}
	p.list("Mounts", mounts)
}

func portText(c spec.ContainerPort) string {
	text := fmt.Sprintf("%d/%s", c.ContainerPort, c.Protocol)
	if c.Name != "" {
		text += " (" + c.Name + ")"
	}
	if c.HostPort != 0 {
		text += fmt.Sprintf(", host port %d", c.HostPort)
		if c.HostIP != "" {
			text += " of " + c.HostIP
		}
	}
	return text
}

func resources(list spec.ResourceList) string {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(list)) {
		q := list[name]
		all = append(all, name+" "+q.String())
	}
	return strings.Join(all, ", ")
}

// variable returns the value of a variable, or where it is from.
func variable(v spec.EnvVar) string {
	switch from := v.ValueFrom; {
	case from == nil:
		return v.Value
	case from.FieldRef != nil:
		return "(field " + from.FieldRef.FieldPath + ")"
	case from.ResourceFieldRef != nil:
		return "(" + from.ResourceFieldRef.Resource + ")"
	case from.ConfigMapKeyRef != nil:
		return fmt.Sprintf("(key %s of config map %s)", from.ConfigMapKeyRef.Key, from.ConfigMapKeyRef.Name)
	case from.SecretKeyRef != nil:
		return fmt.Sprintf("(key %s of secret %s)", from.SecretKeyRef.Key, from.SecretKeyRef.Name)
	case from.FileKeyRef != nil:
		return fmt.Sprintf("(key %s of file %s in volume %s)", from.FileKeyRef.Key, from.FileKeyRef.Path, from.FileKeyRef.VolumeName)
	}
	return ""
}

func mountText(m spec.VolumeMount) string {
	text := m.MountPath + " from " + m.Name
	if sub := m.SubPath + m.SubPathExpr; sub != "" {
		text += ", sub-path " + sub
	}
	if m.ReadOnly {
		text += ", read-only"
	}
	return text
}

// probes adds the probes of a container, each with its newest answer, and the newest one that was not a success.
func (p *page) probes(c *spec.Container, in *Description) {
	for _, row := range []struct {
		name  string
		kind  api.ProbeKind
		probe *spec.Probe
	}{
		{"Startup", api.ProbeStartup, c.StartupProbe},
		{"Readiness", api.ProbeReadiness, c.ReadinessProbe},
		{"Liveness", api.ProbeLiveness, c.LivenessProbe},
	} {
		if row.probe == nil {
			continue
		}
		p.add(row.name+" probe", probeText(row.probe))
		p.add("  Last answer", p.answer(in.Why, c.Name, row.kind))
		for _, e := range slices.Backward(in.Events) {
			if e.Container == c.Name && e.Fields["probe"] == row.name && slices.Contains(answers, e.Kind) {
				text := view.Age(p.now.Sub(e.Time)) + " ago: " + e.Fields["output"] + e.Fields["error"]
				p.add("  Last failure", strings.TrimSuffix(text, ": "))
				break
			}
		}
	}
}

// answer returns the newest answer of a probe; empty: the probe does not run or has not answered.
func (p *page) answer(why *api.Explanation, container string, kind api.ProbeKind) string {
	if why == nil {
		return ""
	}
	for i := range why.Containers {
		c := &why.Containers[i]
		for _, a := range c.Probes {
			if c.Name == container && a.Probe == kind {
				return view.Age(p.now.Sub(a.Time)) + " ago: " + strings.ToLower(string(a.Outcome))
			}
		}
	}
	return ""
}

// answers are the events with an answer of a probe.
var answers = []api.EventKind{api.EventProbeFailed, api.EventProbeErrored, api.EventProbeWarned}

func probeText(p *spec.Probe) string {
	text := fmt.Sprintf("%v, every %v, timeout %v, failure threshold %d",
		p, p.PeriodSeconds.Duration(), p.TimeoutSeconds.Duration(), p.FailureThreshold)
	if p.SuccessThreshold > 1 {
		text += fmt.Sprintf(", success threshold %d", p.SuccessThreshold)
	}
	if delay := p.InitialDelaySeconds.Duration(); delay > time.Duration(0) {
		text += fmt.Sprintf(", delay %v", delay)
	}
	return text
}

// volumes adds the volumes and where they are.
func (p *page) volumes(pod *api.Pod) {
	if len(pod.Spec.Volumes) == 0 {
		return
	}
	p.head("Volumes")
	p.indented(func() {
		for i := range pod.Spec.Volumes {
			p.add(pod.Spec.Volumes[i].Name, pod.Spec.Volumes[i].String())
		}
	})
}

// podUsage returns what a pod uses, one line for each resource.
func podUsage(s *api.PodStats, now time.Time) []string {
	lines := usage(s.CPU, s.Memory, s.ProcessStats)
	if f := s.EphemeralStorage; f != nil {
		lines = append(lines,
			fmt.Sprintf("disk %s for writable layers and logs, measured %s ago", view.Size(f.UsedBytes), view.Age(now.Sub(f.Time))))
	}
	if n := s.Network; n != nil {
		lines = append(lines, fmt.Sprintf("network %s received, %s sent", view.Size(n.RxBytes), view.Size(n.TxBytes)))
	}
	return lines
}

// containerUsage returns what a container uses.
func containerUsage(s *api.PodStats, name string, now time.Time) []string {
	if s == nil {
		return nil
	}
	at := slices.IndexFunc(s.Containers, func(c api.ContainerStats) bool { return c.Name == name })
	if at < 0 {
		return nil
	}
	c := &s.Containers[at]
	lines := usage(c.CPU, c.Memory, c.ProcessStats)
	for _, f := range []struct {
		used *api.FsStats
		what string
	}{{c.Rootfs, "writable layer"}, {c.Logs, "logs"}} {
		if f.used != nil {
			age := view.Age(now.Sub(f.used.Time))
			lines = append(lines, fmt.Sprintf("%s %s, measured %s ago", f.what, view.Size(f.used.UsedBytes), age))
		}
	}
	return lines
}

// usage returns the lines for CPU time, memory and processes.
func usage(c *api.CPUStats, m *api.MemoryStats, p *api.ProcessStats) (lines []string) {
	if c != nil && c.UsageNanoCores != nil {
		text := "CPU " + cpuUsage(c)
		if t := c.Throttling; t != nil && t.ThrottledPeriods > 0 {
			text += fmt.Sprintf(", throttled in %d of %d periods", t.ThrottledPeriods, t.Periods)
		}
		lines = append(lines, text)
	}
	if m != nil {
		text := "memory " + memoryUsage(m)
		if m.LimitBytes != nil {
			text += " of " + view.Size(*m.LimitBytes)
		}
		if m.OOMKills != nil && *m.OOMKills > 0 {
			text += fmt.Sprintf(", %d processes OOM-killed", *m.OOMKills)
		}
		lines = append(lines, text)
	}
	if p != nil {
		lines = append(lines, fmt.Sprintf("processes %d", p.ProcessCount))
	}
	return lines
}
