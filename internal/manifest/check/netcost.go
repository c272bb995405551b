package check

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"david/internal/manifest/render"
	"david/internal/manifest/stream"
)

// NetworkCost is what a network was measured to do to a database's throughput.
type NetworkCost struct {
	Network, Against string
	Ratio            float64 // of transactions/s, to those over Against
	Interval         [2]float64
	Differs, Alike   bool // what the record concluded, a difference or that there is none to speak of; neither: nothing
	Experiment       string
	Measured         time.Time
}

// text says what was concluded, so that nobody takes the ratio of a record that concluded nothing for a cost.
func (n NetworkCost) text() string {
	figures := fmt.Sprintf("%.2f [%.2f, %.2f] of the transactions/s", n.Ratio, n.Interval[0], n.Interval[1])
	source := fmt.Sprintf("(%s, %s)", n.Experiment, n.Measured.Format("2006-01-02"))
	switch {
	case n.Differs:
		return fmt.Sprintf("%s gave %s over %s %s", n.Network, figures, n.Against, source)
	case n.Alike:
		return fmt.Sprintf("%s is equivalent to %s: %s %s", n.Network, n.Against, figures, source)
	}
	return fmt.Sprintf("%s is not shown to differ from %s: %s %s", n.Network, n.Against, figures, source)
}

// NetworkCosts are those that were measured, of each network the newest that concluded something. None of a kind: nobody did.
type NetworkCosts struct {
	Pods    []NetworkCost // of pod networks, against the nodes' own
	MTU     []NetworkCost // of an MTU, against the usual one
	Macvlan []NetworkCost // of what Multus gives as a rule, against the nodes' own
}

// mostCosts are named of a kind.
const mostCosts = 5

// costs looks up what was measured, once it is asked for.
func (c *checker) costs() (n NetworkCosts) {
	if c.Networks == nil {
		return n
	}
	n, err := c.Networks()
	if err != nil {
		c.unseen["what networks cost here: "+err.Error()] = true
	}
	return n
}

// networkCosts says of a server whose pods have another network than the cluster's usual one what that costs, as
// measured here.
func (c *checker) networkCosts(s server) {
	if s.hostNetwork != "" && s.doc.Get(s.hostNetwork) == true {
		c.networkCost(s, s.hostNetwork, "the pod is in its node's network: its ports are the node's, and no NetworkPolicy holds. What pod networks cost against that", c.costs().Pods,
			"david network measure --path host,vxlan,routed (as root), or in the cluster david study p3, tells what that spares")
	}
	path := stream.Step(s.annotations, render.MultusKey)
	text := stream.Text(s.doc.Get(path))
	if s.annotations == "" || text == "" {
		return
	}
	c.networkCost(s, path, "Multus gives the pod a second network, "+networkNames(text)+", which Services do not lead to. What a macvlan, as such networks are as a rule, costs against the node's own", c.costs().Macvlan,
		"david network measure --path host,macvlan (as root) tells what it costs")
	if mtu := askedMTU(text); mtu > 0 {
		c.networkCost(s, path, fmt.Sprintf("the second network is asked for an MTU of %d, which its definition has to have the plugin tuning for. What another MTU gives", mtu), c.costs().MTU,
			fmt.Sprintf("david network measure --path macvlan,macvlan:mtu=%d (as root) tells what it gives", mtu))
	}
}

// networkCost reports one, with what was measured of its kind or that nobody did.
func (c *checker) networkCost(s server, path, what string, costs []NetworkCost, measure string) {
	if len(costs) == 0 {
		c.report(SeverityNote, "network-cost", s.doc, path, what+" was not measured here", measure)
		return
	}
	var texts []string
	for _, n := range costs[:min(mostCosts, len(costs))] {
		texts = append(texts, n.text())
	}
	c.report(SeverityNote, "network-cost", s.doc, path, what+" was measured here: "+strings.Join(texts, "; "), measure)
}

// selected are the networks of Multus' annotation in its form with arguments; none where it is the short form.
func selected(text string) (list []struct {
	Name string                `json:"name"`
	Args struct{ MTU float64 } `json:"cni-args"`
}) {
	if json.Unmarshal([]byte(text), &list) != nil {
		return nil
	}
	return list
}

// networkNames are those that Multus is asked for.
func networkNames(text string) string {
	var names []string
	for _, n := range selected(text) {
		names = append(names, n.Name)
	}
	if len(names) == 0 {
		return text
	}
	return strings.Join(names, ", ")
}

// askedMTU is the first that Multus is asked for; 0 for none.
func askedMTU(text string) int {
	for _, n := range selected(text) {
		if n.Args.MTU > 0 {
			return int(n.Args.MTU)
		}
	}
	return 0
}
