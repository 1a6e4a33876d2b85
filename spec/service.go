package spec

import (
	"cmp"
	"fmt"
	"slices"
)

// service takes a Service: its name becomes the hostname of the first pod that it selects, by which other pods reach it, and ports that it
// publishes become host ports of that pod. There is no load balancer.
func (s *stream) service(x *object) {
	s.problems = append(s.problems, s.metadata(x, []string{"spec"})...)
	of := x.n.child("spec")
	if of == nil || of.kind != kindTable {
		s.fail(cmp.Or(of, x.n), "spec: Required value")
		return
	}
	s.fieldsAre(of, serviceKeys...)
	kind := cmp.Or(textOf(of.child("type")), "ClusterIP")
	if kind == "ExternalName" {
		s.lose(of.child("type"), "names of other hosts have no aliases", "use "+quote(textOf(of.child("externalName")))+" in its place")
		return
	}
	for _, key := range []string{
		"allocateLoadBalancerNodePorts", "externalTrafficPolicy", "healthCheckNodePort", "internalTrafficPolicy", "ipFamilyPolicy",
		"loadBalancerClass", "loadBalancerIP", "sessionAffinity", "trafficDistribution",
	} {
		if c := of.child(key); c != nil && c.value != "None" {
			s.problems = append(s.problems, warnAt(c, ignored+"there is no load balancer"))
		}
	}
	for _, key := range []string{"externalIPs", "loadBalancerSourceRanges"} {
		if c := of.child(key); c != nil && len(c.items) > 0 {
			s.lose(c, "host ports accept connections to all addresses of the host", "set hostIP in the ports of the container")
		}
	}
	pods := s.selected(of.child("selector"))
	if len(pods) == 0 {
		if s.o.Others != nil { // its pods are in another file
			return
		}
		s.problems = append(s.problems, warnAt(cmp.Or(of.child("selector"), of), "no pod of this file has these labels"))
		return
	}
	if len(pods) > 1 && textOf(of.child("clusterIP")) != "None" {
		w := warnAt(cmp.Or(of.child("selector"), of), fmt.Sprintf("only pod %s of %d is reached: there is no load balancer",
			quote(textOf(pods[0].child("name"))), len(pods)))
		s.problems = append(s.problems, w)
	}
	s.nameOf(x, pods[0])
	published := kind == "NodePort" || kind == "LoadBalancer"
	for _, p := range items(of.child("ports")) {
		s.servicePort(x, p, pods[0], kind, published)
	}
}

// serviceKeys are the fields of the spec of a Service.
var serviceKeys = []string{
	"allocateLoadBalancerNodePorts", "clusterIP", "clusterIPs", "externalIPs", "externalName", "externalTrafficPolicy",
	"healthCheckNodePort", "internalTrafficPolicy", "ipFamilies", "ipFamilyPolicy", "loadBalancerClass", "loadBalancerIP",
	"loadBalancerSourceRanges", "ports",
	"publishNotReadyAddresses", "selector", "sessionAffinity", "sessionAffinityConfig", "trafficDistribution", "type",
}

// selected returns the pods with all labels of a selector. An empty one selects none.
func (s *stream) selected(selector *node) []*node {
	var found []*node
	for i := range s.pods {
		labels := s.pods[i].root.child("labels")
		differs := func(c *node) bool {
			own := labels.child(c.key)
			return own == nil || own.value != c.value
		}
		if len(items(selector)) > 0 && !slices.ContainsFunc(items(selector), differs) {
			found = append(found, s.pods[i].root)
		}
	}
	return found
}

// nameOf makes a pod reachable by the name of a Service.
func (s *stream) nameOf(x *object, pod *node) {
	name, hostname := textOf(pod.child("name")), pod.child("hostname")
	isNetwork := pod.child("hostNetwork") != nil && pod.child("hostNetwork").value == true
	switch {
	case name == x.name || textOf(hostname) == x.name || x.name == "":
	case hostname == nil && !isNetwork && pod.child("subdomain") == nil:
		at := cmp.Or(x.n.child("metadata").child("name"), x.n)
		pod.put("hostname", &node{kind: kindString, value: x.name, at: at.at, keyAt: at.keyAt})
		pod.child("hostname").segment = at.path()
	default:
		s.problems = append(s.problems, warnAt(cmp.Or(x.n.child("metadata").child("name"), x.n), fmt.Sprintf(
			"other pods reach pod %s by the name %s only", quote(name), quote(cmp.Or(textOf(hostname), name)))))
	}
	for i := range s.pods {
		if s.pods[i].root == pod && x.file != "" {
			s.pods[i].changed = true
		}
	}
}

// servicePort publishes a port of a Service, or reports that its number is not that of the container.
func (s *stream) servicePort(x *object, p, pod *node, kind string, published bool) {
	if p.kind != kindTable {
		s.fail(p, "must be a mapping, found "+p.kind.String())
		return
	}
	s.fieldsAre(p, "appProtocol", "name", "nodePort", "port", "protocol", "targetPort")
	port, is := p.child("port").integer()
	if !is || port < 1 || port > 65535 {
		s.fail(cmp.Or(p.child("port"), p), "port: must be between 1 and 65535, inclusive")
		return
	}
	container, entry, number := targetOf(pod, p, port)
	if container == nil || number == 0 {
		s.fail(cmp.Or(p.child("targetPort"), p), "Not found: no container of pod "+quote(textOf(pod.child("name")))+" has this port")
		return
	}
	if !published {
		if number != port && s.isNamed(x) {
			s.lose(cmp.Or(p.child("targetPort"), p), fmt.Sprintf("other pods reach port %d, not %d: there is no proxy", number, port),
				fmt.Sprintf("set port to %d, here and in the programs that connect, or accept it with --allow-loss", number))
		}
		return
	}
	host := port
	at := p.child("port")
	if node, is := p.child("nodePort").integer(); is && kind == "NodePort" {
		host, at = node, p.child("nodePort")
	}
	if n := pod.child("hostNetwork"); n != nil && n.value == true {
		if host != number {
			s.lose(at, fmt.Sprintf("the pod has the network of the host, so its port is %d", number), "")
		}
		return
	}
	if entry == nil {
		ports := container.list("ports")
		if ports == nil {
			return
		}
		entry = newTable(nil)
		entry.at, entry.keyAt = p.at, p.at
		ports.appendItem(entry)
		entry.replace("containerPort", kindInteger, number)
		if protocol := textOf(p.child("protocol")); protocol != "" {
			entry.replace("protocol", kindString, protocol)
		}
	}
	if entry.child("hostPort") == nil {
		c := &node{kind: kindInteger, value: host, at: at.at, keyAt: at.keyAt}
		entry.add("hostPort", c)
		c.segment = ".hostPort"
	}
}

// isNamed reports whether a Service has an address of its own in a cluster: its name is not that of its pods.
func (s *stream) isNamed(x *object) bool {
	return textOf(x.n.child("spec").child("clusterIP")) != "None"
}

// integer returns the value of an integer. The node may be nil.
func (n *node) integer() (int64, bool) {
	if n == nil {
		return 0, false
	}
	i, is := n.value.(int64)
	return i, is
}

// targetOf returns the container and its port to which a port of a Service leads; the entry is nil if no container lists the port, then the
// container is the first one.
func targetOf(pod, p *node, port int64) (container, entry *node, number int64) {
	protocol := cmp.Or(textOf(p.child("protocol")), string(ProtocolTCP))
	name := textOf(p.child("targetPort"))
	number, is := p.child("targetPort").integer()
	if !is && name == "" {
		number = port
	}
	for _, c := range items(pod.child("containers")) {
		for _, e := range items(c.child("ports")) {
			own, _ := e.child("containerPort").integer()
			sameName := name != "" && textOf(e.child("name")) == name
			if cmp.Or(textOf(e.child("protocol")), string(ProtocolTCP)) == protocol && (sameName || own == number && number != 0) {
				return c, e, own
			}
		}
	}
	if first := items(pod.child("containers")); len(first) > 0 && first[0].kind == kindTable {
		return first[0], nil, number
	}
	return nil, nil, 0
}
