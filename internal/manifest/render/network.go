package render

import (
	"encoding/json"
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

// MultusKey is the annotation by which a pod asks Multus for further networks, as the Network Plumbing Working
// Group's specification has it.
const MultusKey = "k8s.v1.cni.cncf.io/networks"

// The MTUs that a network may be asked for, in bytes: IPv4's least for a host (RFC 1122), and what 16 bits hold.
const (
	leastMTU = 576
	mostMTU  = 65535
)

// linkName is what the kernel takes as a name of a link.
var linkName = regexp.MustCompile(`^[a-zA-Z0-9_.-]{1,15}$`)

func (req Request) checkNetwork() error {
	switch {
	case req.HostNetwork && req.Multus != "":
		return Bad("--host-network and --multus %s: a pod in its node's network gets no second one; give one of them", req.Multus)
	case req.MTU != 0 && req.HostNetwork:
		return Bad("--mtu %d with --host-network: the links are the node's, and no pod's to change", req.MTU)
	case req.MTU != 0 && req.Multus == "":
		return Bad("--mtu %d: no field of a pod says its MTU; that of the cluster's pod network is its network plugin's to set (calico: veth_mtu, flannel: the nodes' link), that of a second network a pod may ask for: add --multus NETWORK", req.MTU)
	case req.MTU != 0 && (req.MTU < leastMTU || req.MTU > mostMTU):
		return Bad("--mtu %d: give %d to %d bytes", req.MTU, leastMTU, mostMTU)
	case req.Multus == "":
		return nil
	}
	namespace, name, link := req.multus()
	for _, label := range []string{namespace, name} {
		if label != "" && len(validation.IsDNS1123Subdomain(label)) > 0 || name == "" {
			return Bad("--multus %q is no name of a NetworkAttachmentDefinition: [NAMESPACE/]NETWORK, with @LINK to name the pod's end", req.Multus)
		}
	}
	if strings.Contains(req.Multus, "@") && !linkName.MatchString(link) {
		return Bad("--multus %q: %q is no name of a link: at most 15 letters, digits, dashes, dots", req.Multus, link)
	}
	if link == "eth0" || link == "lo" {
		return Bad("--multus %q: the pod has a link %s already, and Multus' plugin would fail: give another name, as @net1, or none", req.Multus, link)
	}
	return nil
}

// multus takes the parts of a second network's name.
func (req Request) multus() (namespace, name, link string) {
	name, link, _ = strings.Cut(req.Multus, "@")
	if before, after, found := strings.Cut(name, "/"); found {
		if namespace, name = before, after; namespace == "" {
			name = ""
		}
	}
	return namespace, name, link
}

// NetworkAnnotations are those of the pods that their networks need; none for the cluster's own.
func (req Request) NetworkAnnotations() map[string]string {
	if req.Multus == "" {
		return nil
	}
	if req.MTU == 0 {
		return map[string]string{MultusKey: req.Multus}
	}
	namespace, name, link := req.multus()
	text, err := json.Marshal([]selection{{name, namespace, link, map[string]int{"mtu": req.MTU}}})
	if err != nil {
		panic(err) // of strings and a number
	}
	return map[string]string{MultusKey: string(text)}
}

// selection is a network that Multus is asked for, in the form that takes arguments for its plugins.
type selection struct {
	Name      string         `json:"name"`
	Namespace string         `json:"namespace,omitempty"`
	Interface string         `json:"interface,omitempty"`
	Args      map[string]int `json:"cni-args"`
}

// NetworkReason says what the annotation does, and what it needs.
func (req Request) NetworkReason() string {
	text := "a second network by Multus, which has to run in the cluster, and the NetworkAttachmentDefinition to be there. The server listens on it too, " +
		"at an address that the pod's status annotation k8s.v1.cni.cncf.io/network-status tells; Services and NetworkPolicies are of the first network"
	if req.MTU != 0 {
		text += ". Its MTU is asked for by cni-args, which the plugin tuning takes: the definition has to have it among its plugins, and every hop between server and clients to carry as much"
	}
	return text
}

// WhyHostNetwork says what comes with the node's network.
const WhyHostNetwork = "no veth, bridge or tunnel between the server and its node's network: what that spares is measured by david study p3. Whoever reaches the node reaches the server's ports, 3306 and 33060, " +
	"which are the node's and can be taken; NetworkPolicies do not hold, and a namespace that enforces Pod Security baseline or restricted refuses the pod"

// WhyHostDNS says why the node's network needs another way of asking for names.
const WhyHostDNS = "in the node's network the cluster's names are not found without it"
