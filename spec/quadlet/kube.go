package quadlet

import (
	"bytes"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/podstead/podstead/internal/lazyregexp"
	"github.com/podstead/podstead/spec"
)

// kube adds the pods of the Kubernetes files of a .kube unit. The config maps of ConfigMap= are objects of the same stream.
func (c *converter) kube(u *unit) {
	yamls := u.all("Kube", "Yaml")
	if len(yamls) == 0 {
		c.problems = append(c.problems, spec.Problem{File: u.shown, Line: 1, Column: 1, Message: "Yaml= is missing"})
		return
	}
	var stream bytes.Buffer
	type source struct {
		file  string
		first int // line of the stream that is the first one of the file
	}
	var sources []source
	line := 1
	for _, e := range slices.Concat(yamls, u.all("Kube", "ConfigMap")) {
		for _, name := range c.words(u, e) {
			file := c.path(u, e, name)
			text, _, err := spec.ReadFile(file, maxBytes)
			if err != nil {
				c.problem(e, "read "+clip(u.show(file))+": "+cause(err), "")
				return
			}
			if stream.Len()+len(text) > maxBytes {
				c.problem(e, fmt.Sprintf("the files of the unit are larger than %d bytes", maxBytes), "")
				return
			}
			if c.kubeBytes += len(text); c.kubeBytes > maxKubeBytes {
				c.problem(e, fmt.Sprintf("the Kubernetes files of all units are larger than %d bytes", maxKubeBytes),
					"convert them in several calls")
				return
			}
			sources = append(sources, source{u.show(file), line})
			text = append(bytes.TrimRight(bytes.TrimPrefix(text, []byte("\xef\xbb\xbf")), "\r\n"), '\n')
			stream.Write(text)
			stream.WriteString("---\n")
			line += bytes.Count(text, []byte("\n")) + 1
		}
	}
	_, problems := c.o.ParseParts(u.base+".yaml", stream.Bytes())
	for _, p := range problems {
		i := len(sources) - 1
		for i > 0 && sources[i].first > p.Line {
			i--
		}
		p.File, p.Line = sources[i].file, p.Line-sources[i].first+1
		c.problems = append(c.problems, p)
	}
	if len(problems.Errors()) > 0 {
		return
	}
	text := c.publish(u, stream.Bytes())
	o := c.o
	o.AllowLoss = true // losses are reported
	parts, problems := o.ParseParts(u.base+".yaml", text)
	if errs := problems.Errors(); len(errs) > 0 {
		c.problem(yamls[0], "cannot publish the ports: "+errs[0].Message, "set hostPort in the Kubernetes file")
		return
	}
	for i := range parts {
		own, err := parts[i].Text()
		if err != nil {
			c.problem(yamls[0], "cannot convert: "+err.Error(), "")
			return
		}
		p := &pod{unit: u, kube: own, origin: map[string]entry{"": yamls[0]}}
		p.Name = parts[i].Name
		c.pods = append(c.pods, p)
	}
}

// show returns the path of a file as the user would write it: relative if the unit is, and the file is below its directory.
func (u *unit) show(file string) string {
	if relative, err := filepath.Rel(u.dir, file); err == nil && filepath.IsLocal(relative) {
		return filepath.Join(filepath.Dir(u.shown), relative)
	}
	return file
}

// publish sets the ports of the host of PublishPort= in the Kubernetes objects.
func (c *converter) publish(u *unit, stream []byte) []byte {
	list := u.all("Kube", "PublishPort")
	if len(list) == 0 {
		return stream
	}
	var documents []*yaml.Node
	for d := yaml.NewDecoder(bytes.NewReader(stream)); ; {
		var n yaml.Node
		if d.Decode(&n) != nil { // the end: it was read before
			break
		}
		documents = append(documents, &n)
	}
	for _, e := range list {
		text := c.text(u, e)
		ports, err := parsePorts(text)
		if err != nil {
			c.problem(e, "invalid value: "+strconv.Quote(clip(text))+": "+err.Error(), "")
			continue
		}
		for _, p := range ports {
			if p.HostPort == 0 {
				c.lose(e, "the port of the host is not chosen", "write it: PublishPort=PORT:"+clip(text))
				break
			}
			publishPort(documents, p)
		}
	}
	var b bytes.Buffer
	e := yaml.NewEncoder(&b)
	for _, d := range documents {
		if e.Encode(d) != nil {
			return stream
		}
	}
	if e.Close() != nil {
		return stream
	}
	return b.Bytes()
}

// publishPort sets the port of the host in the first container that has the port, or adds the port to the first container.
func publishPort(documents []*yaml.Node, p spec.ContainerPort) {
	var first *yaml.Node
	for _, d := range documents {
		if len(d.Content) == 0 {
			continue
		}
		of := value(d.Content[0], "spec")
		if template := value(of, "template"); template != nil {
			of = value(template, "spec")
		}
		containers := value(of, "containers")
		if containers == nil || containers.Kind != yaml.SequenceNode {
			continue
		}
		for _, container := range containers.Content {
			if container.Kind != yaml.MappingNode {
				continue
			}
			if first == nil {
				first = container
			}
			ports := value(container, "ports")
			if ports == nil {
				continue
			}
			for _, port := range ports.Content {
				number, protocol := value(port, "containerPort"), value(port, "protocol")
				isTCP := protocol == nil || protocol.Value == "TCP"
				if number == nil || number.Value != strconv.Itoa(int(p.ContainerPort)) ||
					isTCP != (p.Protocol == "") || !isTCP && protocol.Value != string(p.Protocol) {
					continue
				}
				set(port, "hostPort", scalar(strconv.Itoa(int(p.HostPort)), "!!int"))
				if p.HostIP != "" {
					set(port, "hostIP", scalar(p.HostIP, "!!str"))
				}
				return
			}
		}
	}
	if first == nil {
		return
	}
	port := &yaml.Node{Kind: yaml.MappingNode}
	set(port, "containerPort", scalar(strconv.Itoa(int(p.ContainerPort)), "!!int"))
	set(port, "hostPort", scalar(strconv.Itoa(int(p.HostPort)), "!!int"))
	if p.HostIP != "" {
		set(port, "hostIP", scalar(p.HostIP, "!!str"))
	}
	if p.Protocol != "" {
		set(port, "protocol", scalar(string(p.Protocol), "!!str"))
	}
	ports := value(first, "ports")
	if ports == nil || ports.Kind != yaml.SequenceNode {
		ports = &yaml.Node{Kind: yaml.SequenceNode}
		set(first, "ports", ports)
	}
	ports.Content = append(ports.Content, port)
}

func scalar(text, tag string) *yaml.Node {
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: tag, Value: text}
}

// value returns the value of a key; nil: there is none.
func value(n *yaml.Node, key string) *yaml.Node {
	if n == nil || n.Kind != yaml.MappingNode {
		return nil
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == key {
			return n.Content[i+1]
		}
	}
	return nil
}

// set adds or replaces the value of a key.
func set(n *yaml.Node, key string, to *yaml.Node) {
	if n.Kind != yaml.MappingNode {
		return
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == key {
			n.Content[i+1] = to
			return
		}
	}
	n.Content = append(n.Content, scalar(key, "!!str"), to)
}

var (
	waits    = lazyregexp.New(`(?m)^waitFor\b`)
	nameLine = lazyregexp.New(`\A(?:#[^\n]*\n|\n)*name = [^\n]*\n`)
)

// addWaits adds the conditions of the unit to the pod file of a Kubernetes file.
func (c *converter) addWaits(p *pod, text []byte) []byte {
	if len(p.WaitFor) == 0 || text == nil {
		return text
	}
	if waits.Match(text) {
		c.lose(p.origin["waitFor"], "the Kubernetes file has waitFor already", "write the conditions there")
		return text
	}
	var quoted []string
	for _, w := range p.WaitFor {
		quoted = append(quoted, strconv.Quote(w))
	}
	line := "waitFor = [" + strings.Join(quoted, ", ") + "]\n"
	end := len(nameLine.Find(text))
	return slices.Concat(text[:end], []byte(line), text[end:])
}
