//! Gradients of everything that a value was computed from.

use super::arena::{Arena, NodeId};
use super::op::Op;

/// Marks a node on the stack whose operands all come before it in the order.
const DONE: u32 = 1 << 31;

impl Arena {
    /// Sets the gradient of `root` to one and adds to those of all nodes that it was computed from, the last computed
    /// first. Gradients add up from call to call, those between root and leaves too.
    pub fn backward(&mut self, root: NodeId) {
        self.find_order(root);
        self.grad[root.0 as usize] = 1.0;
        let order = std::mem::take(&mut self.order);
        for &id in order.iter().rev() {
            self.step_back(id as usize);
        }
        self.order = order;
    }

    fn step_back(&mut self, id: usize) {
        let link = self.links[id];
        let (g, out) = (self.grad[id], self.data[id]);
        let (a, b) = (link.left as usize, link.right as usize);
        match link.op {
            Op::Leaf => {}
            Op::Linear => self.neuron_backward(link.left, link.right, g),
            Op::LinearRelu => {
                let g = if out > 0.0 { g } else { 0.0 };
                self.neuron_backward(link.left, link.right, g);
            }
            Op::Add => {
                self.grad[a] += g;
                self.grad[b] += g;
            }
            op => {
                let (to_a, to_b) = op.slopes(self.data[a], self.data[b], out);
                self.grad[a] += to_a * g;
                if op.is_binary() {
                    self.grad[b] += to_b * g;
                }
            }
        }
    }

    /// Fills `order` with the nodes under `root` that are no leaves, operands before what uses them. Depth first with a
    /// stack of its own: expressions may be deeper than the machine's.
    fn find_order(&mut self, root: NodeId) {
        self.next_pass();
        let (mut stack, mut order) = (std::mem::take(&mut self.stack), std::mem::take(&mut self.order));
        order.clear();
        stack.push(root.0);
        while let Some(entry) = stack.pop() {
            if entry & DONE != 0 {
                order.push(entry & !DONE);
                continue;
            }
            let link = &mut self.links[entry as usize];
            if link.op == Op::Leaf || link.pass == self.pass {
                continue;
            }
            link.pass = self.pass;
            let link = *link;
            stack.push(entry | DONE);
            match link.op {
                Op::Linear | Op::LinearRelu => {
                    // Parameters are leaves; inputs that another neuron has seen are in the order already.
                    let inputs = &mut self.lists[link.right as usize];
                    if inputs.pass != self.pass {
                        inputs.pass = self.pass;
                        stack.extend_from_slice(&inputs.members);
                    }
                }
                _ => stack.extend([link.left, link.right]),
            }
        }
        (self.stack, self.order) = (stack, order);
    }

    /// Counts the passes; when the count begins again, no node may remember an old one.
    fn next_pass(&mut self) {
        self.pass = self.pass.wrapping_add(1);
        if self.pass == 0 {
            self.links.iter_mut().for_each(|link| link.pass = 0);
            self.lists.iter_mut().for_each(|list| list.pass = 0);
            self.pass = 1;
        }
    }
}
