package show

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/internal/view"
	"github.com/podstead/podstead/spec"
)

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
	p.add("Command", command(c.Command))
	p.add("Arguments", command(c.Args))
	var ports []string
	for _, port := range c.Ports {
		ports = append(ports, portText(port))
	}
	p.list("Ports", ports)
	p.add("Requests", resources(c.Resources.Requests))
	p.add("Limits", resources(c.Resources.Limits))
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

// command returns arguments as a shell would read them.
func command(args []string) string {
	list := slices.Clone(args)
	for i, arg := range list {
		if arg == "" || strings.ContainsAny(arg, " \t\n\"'\\$&;|<>()*?[]#~`{}!") {
			list[i] = "'" + strings.ReplaceAll(arg, "'", `'\''`) + "'"
		}
	}
	return strings.Join(list, " ")
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
	}{{"Startup", api.ProbeStartup, c.StartupProbe}, {"Readiness", api.ProbeReadiness, c.ReadinessProbe}, {"Liveness", api.ProbeLiveness, c.LivenessProbe}} {
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
	var text string
	switch {
	case p.Exec != nil:
		text = "command " + command(p.Exec.Command)
	case p.HTTPGet != nil:
		scheme := strings.ToLower(p.HTTPGet.Scheme)
		text = fmt.Sprintf("%s://%s:%s%s", scheme, p.HTTPGet.Host, p.HTTPGet.Port, p.HTTPGet.Path)
	case p.TCPSocket != nil:
		text = fmt.Sprintf("TCP %s:%s", p.TCPSocket.Host, p.TCPSocket.Port)
	case p.GRPC != nil:
		text = fmt.Sprintf("gRPC port %d", p.GRPC.Port)
		if p.GRPC.Service != "" {
			text += ", service " + p.GRPC.Service
		}
	}
	text += fmt.Sprintf(", every %v, timeout %v, failure threshold %d", p.PeriodSeconds.Duration(), p.TimeoutSeconds.Duration(), p.FailureThreshold)
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
			p.add(pod.Spec.Volumes[i].Name, volumeText(&pod.Spec.Volumes[i]))
		}
	})
}

func volumeText(v *spec.Volume) string {
	switch {
	case v.EmptyDir != nil:
		text := "empty directory"
		if v.EmptyDir.Medium != "" {
			text += " in memory"
		}
		if v.EmptyDir.SizeLimit != nil {
			text += ", limit " + v.EmptyDir.SizeLimit.String()
		}
		return text
	case v.HostPath != nil:
		return "host path " + v.HostPath.Path
	case v.PersistentVolumeClaim != nil:
		return "persistent volume " + v.PersistentVolumeClaim.ClaimName
	case v.ConfigMap != nil:
		return "config map " + v.ConfigMap.Name
	case v.Secret != nil:
		return "secret " + v.Secret.SecretName
	case v.Projected != nil:
		return fmt.Sprintf("%d projected sources", len(v.Projected.Sources))
	case v.DownwardAPI != nil:
		return "fields of the pod"
	case v.Image != nil:
		return "image " + v.Image.Reference
	}
	return ""
}
