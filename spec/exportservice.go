package spec

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

// The labels that [Options.Manifests] adds to pods that a Service cannot select by other labels. They have the name and the subdomain of
// the pod. Manifests that have them are accepted, without them.
const (
	labelPod       = "podstead.io/pod"
	labelSubdomain = "podstead.io/subdomain"
)

// dropOwnLabels removes the labels that Manifests has added.
func dropOwnLabels(root *node) {
	labels := root.child("labels")
	for label, field := range map[string]string{labelPod: "name", labelSubdomain: "subdomain"} {
		if own := labels.child(label); own != nil && own.value == textOf(root.child(field)) {
			labels.remove(label)
			if len(labels.items) == 0 {
				root.remove("labels")
			}
		}
	}
}

// services adds the Services by whose names pods reach each other, and then the pods.
func (x *exporter) services() Problems {
	var problems Problems
	needed := map[string]bool{} // pods that others wait for until they are ready
	subdomains := map[string][]*exportedPod{}
	var order []string
	for i := range x.pods {
		p := &x.pods[i]
		for _, entry := range p.pod.WaitFor {
			if c := ParseWaitCondition(entry); c.Kind == WaitPod && c.State == WaitReady {
				needed[c.Object] = true
			}
		}
		if name := p.pod.Subdomain; name != "" {
			if subdomains[name] == nil {
				order = append(order, name)
			}
			subdomains[name] = append(subdomains[name], p)
		}
	}
	for _, name := range order {
		problems = append(problems, x.subdomain(name, subdomains[name])...)
	}
	hidden := map[string]string{}
	pods := make([]*Pod, len(x.pods))
	for i := range x.pods {
		pods[i] = x.pods[i].pod
	}
	for _, h := range HiddenNames(pods, nil) {
		hidden[h.Pod+"/"+h.Name] = h.Why
	}
	for i := range x.pods {
		p := &x.pods[i]
		ports := servicePorts(p.pod)
		if len(ports) == 0 && !needed[p.pod.Name] || p.pod.Schedule != nil {
			continue
		}
		for _, name := range append([]string{p.pod.Name}, otherNames(p.pod)...) {
			if hidden[p.pod.Name+"/"+name] == "" {
				problems = append(problems, x.service(name, p, ports)...)
			}
		}
	}
	for i := range x.pods {
		x.podObject(&x.pods[i])
	}
	return problems
}

// podObject adds the Pod, or what creates it.
func (x *exporter) podObject(p *exportedPod) {
	manifest := asManifest(p.root)
	if p.pod.isJob() {
		manifest = asJob(p)
	}
	manifest.above = p.root.above
	x.objects = append(x.objects, manifest)
}

// problemOf is a warning about a pod as a whole, or about one of its fields.
func (p *exportedPod) problemOf(field, message, hint string) Problem {
	w := warnAt(cmp.Or(p.root.child(field), p.root), message)
	w.File, w.Hint = printable(p.file), hint
	w.Line, w.Column = max(w.Line, 1), max(w.Column, 1)
	return w
}

// service adds the Service by whose name other pods reach a pod. Without ports it is headless: all ports of the pod are reached.
func (x *exporter) service(name string, p *exportedPod, ports []*node) Problems {
	if len(validation.IsDNS1035Label(name)) > 0 {
		const rule = " must have lower case letters, digits and -, and begin with a letter"
		return Problems{p.problemOf("name", "no Service is written: its name "+quote(name)+rule,
			"use another name in the programs that connect")}
	}
	fields := []*node{x.selector([]*exportedPod{p}, labelPod, p.pod.Name)}
	if len(ports) == 0 {
		fields = append([]*node{keyedText("clusterIP", "None")}, fields...)
	} else {
		fields = append(fields, keyedArray("ports", ports...))
	}
	if !x.add("Service", name, p, nil, keyedTable("spec", fields...)) {
		message := fmt.Sprintf("no Service is written: pod %s has the Service %s", quote(x.owners["Service/"+name].pod), quote(name))
		return Problems{p.problemOf("name", message, "use another name for the pod or for the subdomain")}
	}
	return nil
}

// subdomain adds the headless Service by which pods have names in a subdomain.
func (x *exporter) subdomain(name string, pods []*exportedPod) Problems {
	var problems Problems
	if len(validation.IsDNS1035Label(name)) > 0 {
		return Problems{pods[0].problemOf("subdomain", "no Service is written: its name "+quote(name)+" must begin with a letter", "")}
	}
	for _, p := range pods {
		if p.pod.Hostname == "" {
			problems = append(problems, p.problemOf("subdomain", "the pod has a name in the subdomain of a cluster only with a hostname",
				"set hostname = "+quote(p.pod.Name)))
		}
	}
	fields := []*node{
		keyedText("clusterIP", "None"),
		keyed("publishNotReadyAddresses", node{kind: kindBool, value: true}),
		x.selector(pods, labelSubdomain, name),
	}
	if len(pods) == 1 && pods[0].pod.Name == name {
		if ports := servicePorts(pods[0].pod); len(ports) > 0 {
			fields = append(fields, keyedArray("ports", ports...))
		}
	}
	x.add("Service", name, pods[0], nil, keyedTable("spec", fields...))
	return problems
}

// selector returns the labels that the pods have in common, if no other pod has them. Otherwise it adds a label to the pods.
func (x *exporter) selector(pods []*exportedPod, label, value string) *node {
	var common []*node
	for _, c := range items(pods[0].root.child("labels")) {
		differs := func(p *exportedPod) bool { return p.pod.Labels[c.key] != c.value }
		if !slices.ContainsFunc(pods, differs) {
			common = append(common, keyedText(c.key, textOf(c)))
		}
	}
	selected := 0
	for i := range x.pods {
		labels := x.pods[i].root.child("labels")
		differs := func(c *node) bool {
			own := labels.child(c.key)
			return own == nil || own.value != c.value
		}
		if len(common) > 0 && !slices.ContainsFunc(common, differs) {
			selected++
		}
	}
	if selected == len(pods) {
		return keyedTable("selector", common...)
	}
	for _, p := range pods {
		annotate(p.root, "labels", label, value)
	}
	return keyedTable("selector", keyedText(label, value))
}

// servicePorts returns the ports of a Service for a pod: those of its containers and sidecars, without duplicates.
func servicePorts(p *Pod) []*node {
	var ports []*node
	type transport struct {
		port     int32
		protocol Protocol
	}
	seen, names := map[transport]bool{}, map[string]bool{}
	var all []ContainerPort
	for i := range p.InitContainers {
		if p.InitContainers[i].IsSidecar() {
			all = append(all, p.InitContainers[i].Ports...)
		}
	}
	for i := range p.Containers {
		all = append(all, p.Containers[i].Ports...)
	}
	for _, port := range all {
		t := transport{port.ContainerPort, port.Protocol}
		if seen[t] {
			continue
		}
		seen[t] = true
		name := port.Name
		if name == "" || names[name] {
			name = fmt.Sprintf("%s-%d", strings.ToLower(string(port.Protocol)), port.ContainerPort)
		}
		for names[name] {
			name = "p-" + name
		}
		names[name] = true
		fields := []*node{keyedText("name", name), keyed("port", node{kind: kindInteger, value: int64(port.ContainerPort)})}
		if port.Protocol != ProtocolTCP {
			fields = append(fields, keyedText("protocol", string(port.Protocol)))
		}
		ports = append(ports, keyedTable("", fields...))
	}
	return ports
}
