package view

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/podstead/podstead/api"
)

// Container is a container in the table of podstead ps.
type Container struct {
	Pod, Name, Image string
	Status           string
	Restarts         int
	Started          time.Time // zero: it does not run
	Ports            string    // as docker ps prints them
}

// Containers returns the containers of pods that run, or all.
func Containers(pods []api.Pod, all bool) []Container {
	var list []Container
	for i := range pods {
		p := &pods[i]
		status := &p.Status
		statuses := slices.Concat(status.InitContainerStatuses, status.ContainerStatuses, status.EphemeralContainerStatuses)
		for j := range statuses {
			s := &statuses[j]
			if s.State.Running == nil && !all {
				continue
			}
			c := Container{
				Pod: p.Metadata.Name, Name: s.Name, Image: s.Image, Restarts: s.RestartCount, Ports: ports(p, s.Name), Status: "Waiting",
			}
			switch state := s.State; {
			case state.Running != nil:
				c.Status, c.Started = "Running", state.Running.StartedAt
			case state.Terminated != nil:
				c.Status = fmt.Sprintf("%s (%d)", terminatedStatus(state.Terminated), state.Terminated.ExitCode)
			case state.Waiting != nil:
				c.Status = cmp.Or(string(state.Waiting.Reason), c.Status)
			}
			list = append(list, c)
		}
	}
	return list
}

// ports returns the ports of a container: host ports as ADDRESS:PORT->PORT/PROTOCOL, others as PORT/PROTOCOL.
func ports(p *api.Pod, name string) string {
	var list []string
	for c := range p.Spec.OwnContainers() {
		if c.Name != name {
			continue
		}
		for _, port := range c.Ports {
			text := fmt.Sprintf("%d/%s", port.ContainerPort, strings.ToLower(cmp.Or(string(port.Protocol), "tcp")))
			if port.HostPort != 0 {
				text = fmt.Sprintf("%s:%d->%s", cmp.Or(port.HostIP, "0.0.0.0"), port.HostPort, text)
			}
			list = append(list, text)
		}
	}
	return strings.Join(list, ", ")
}

// ContainerTable returns the rows of podstead ps.
func ContainerTable(list []Container, now time.Time) [][]string {
	rows := [][]string{{"POD", "CONTAINER", "IMAGE", "STATUS", "RESTARTS", "UP", "PORTS"}}
	for i := range list {
		c := &list[i]
		up := "<none>"
		if !c.Started.IsZero() {
			up = Age(now.Sub(c.Started))
		}
		rows = append(rows, []string{c.Pod, c.Name, c.Image, c.Status, strconv.Itoa(c.Restarts), up, cmp.Or(c.Ports, "<none>")})
	}
	return rows
}
