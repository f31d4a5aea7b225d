//! The nodes, who uses them, and their end.

use super::op::{Fault, Op};

/// As many as 31 bits count: backward passes use the last one.
const MAX_NODES: usize = 1 << 31;

/// The place of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct NodeId(pub u32);

/// The place of a list of nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ListId(pub u32);

/// What an op is applied to: a node, or a number that becomes one.
#[derive(Clone, Copy, Debug)]
pub enum Operand {
    Node(NodeId),
    Number(f64),
}

/// How a node was computed, and who needs it.
#[derive(Clone, Copy)]
pub(super) struct Link {
    pub op: Op,
    /// A node; of a neuron, the list of its weights and its bias.
    pub left: u32,
    /// A node, the left one again where an op has one operand; of a neuron, the list of its inputs.
    pub right: u32,
    /// Shares: of holders outside, nodes and lists.
    users: u32,
    /// The backward pass that saw it last.
    pub pass: u32,
}

/// Nodes that are used together, by many: the parameters of a neuron, the inputs of a layer.
#[derive(Default)]
pub(super) struct List {
    pub members: Vec<u32>,
    users: u32,
    pub pass: u32,
}

/// All expressions that somebody holds.
#[derive(Default)]
pub struct Arena {
    pub(super) links: Vec<Link>,
    pub(super) data: Vec<f64>,
    pub(super) grad: Vec<f64>,
    pub(super) lists: Vec<List>,
    free_nodes: Vec<u32>,
    free_lists: Vec<u32>,
    pub(super) pass: u32,
    /// What ends, while it ends.
    ending: Vec<u32>,
    /// The numbers of a layer's inputs, while it is computed.
    pub(super) inputs: Vec<f64>,
    /// Memory of backward passes, kept for the next one.
    pub(super) stack: Vec<u32>,
    pub(super) order: Vec<u32>,
}

impl Arena {
    /// An arena without nodes.
    pub const fn new() -> Arena {
        Arena {
            links: Vec::new(),
            data: Vec::new(),
            grad: Vec::new(),
            lists: Vec::new(),
            free_nodes: Vec::new(),
            free_lists: Vec::new(),
            pass: 0,
            ending: Vec::new(),
            inputs: Vec::new(),
            stack: Vec::new(),
            order: Vec::new(),
        }
    }

    /// How many nodes somebody needs.
    pub fn live(&self) -> usize {
        self.links.len() - self.free_nodes.len()
    }

    /// A node of its own for a number. The caller holds it.
    pub fn leaf(&mut self, number: f64) -> Result<NodeId, Fault> {
        let id = self.node(Op::Leaf, 0, 0, number)?;
        self.hold(id);
        Ok(id)
    }

    /// Applies an op of one operand. The caller holds the result.
    #[inline]
    pub fn unary(&mut self, op: Op, a: NodeId) -> Result<NodeId, Fault> {
        let value = op.value(self.data[a.0 as usize], 0.0)?;
        let id = self.node(op, a.0, a.0, value)?;
        self.hold(a);
        self.hold(id);
        Ok(id)
    }

    /// Applies an op of two operands. The caller holds the result.
    #[inline]
    pub fn binary(&mut self, op: Op, a: Operand, b: Operand) -> Result<NodeId, Fault> {
        let value = op.value(self.number(a), self.number(b))?;
        let (a, b) = (self.resolve(a)?, self.resolve(b)?);
        let id = self.node(op, a.0, b.0, value)?;
        self.hold(a);
        self.hold(b);
        self.hold(id);
        Ok(id)
    }

    fn number(&self, operand: Operand) -> f64 {
        match operand {
            Operand::Node(id) => self.data(id),
            Operand::Number(number) => number,
        }
    }

    fn resolve(&mut self, operand: Operand) -> Result<NodeId, Fault> {
        match operand {
            Operand::Node(id) => Ok(id),
            Operand::Number(number) => self.node(Op::Leaf, 0, 0, number),
        }
    }

    /// A node that nobody holds yet.
    #[inline]
    pub(super) fn node(&mut self, op: Op, left: u32, right: u32, value: f64) -> Result<NodeId, Fault> {
        let link = Link { op, left, right, users: 0, pass: 0 };
        if let Some(id) = self.free_nodes.pop() {
            let k = id as usize;
            (self.links[k], self.data[k], self.grad[k]) = (link, value, 0.0);
            return Ok(NodeId(id));
        }
        if self.links.len() >= MAX_NODES {
            return Err(Fault::Full);
        }
        let id = self.links.len() as u32;
        self.links.push(link);
        self.data.push(value);
        self.grad.push(0.0);
        Ok(NodeId(id))
    }

    /// A list that holds its members; numbers become nodes of it. The caller holds the list.
    pub fn list(&mut self, members: impl IntoIterator<Item = Operand>) -> Result<ListId, Fault> {
        let id = match self.free_lists.pop() {
            Some(id) => id,
            None => {
                self.lists.push(List::default());
                (self.lists.len() - 1) as u32
            }
        };
        let mut list = std::mem::take(&mut self.lists[id as usize].members);
        let result = members.into_iter().try_for_each(|operand| {
            let member = self.resolve(operand)?;
            self.hold(member);
            list.push(member.0);
            Ok(())
        });
        self.lists[id as usize] = List { members: list, users: 1, pass: 0 };
        match result {
            Ok(()) => Ok(ListId(id)),
            Err(fault) => {
                self.release_list(ListId(id));
                Err(fault)
            }
        }
    }

    /// The members of a list.
    pub fn members(&self, list: ListId) -> impl Iterator<Item = NodeId> {
        self.lists[list.0 as usize].members.iter().map(|&id| NodeId(id))
    }

    /// Takes a share of a node.
    #[inline]
    pub fn hold(&mut self, id: NodeId) {
        self.links[id.0 as usize].users += 1;
    }

    /// Takes a share of a list.
    pub(super) fn hold_list(&mut self, id: ListId) {
        self.lists[id.0 as usize].users += 1;
    }

    /// Gives a share back; with the last one the node ends, and gives back its own.
    #[inline]
    pub fn release(&mut self, id: NodeId) {
        let users = &mut self.links[id.0 as usize].users;
        *users -= 1;
        if *users == 0 {
            self.ending.push(id.0);
            self.end();
        }
    }

    /// Gives a share of a list back.
    pub fn release_list(&mut self, id: ListId) {
        self.drop_list(id.0);
        self.end();
    }

    /// Ends what nobody needs: a chain of any length, without recursion.
    fn end(&mut self) {
        while let Some(id) = self.ending.pop() {
            let Link { op, left, right, .. } = self.links[id as usize];
            self.free_nodes.push(id);
            match op {
                Op::Leaf => {}
                Op::Linear | Op::LinearRelu => {
                    self.drop_list(left);
                    self.drop_list(right);
                }
                op => {
                    self.drop_node(left);
                    if op.is_binary() {
                        self.drop_node(right);
                    }
                }
            }
        }
    }

    #[inline]
    fn drop_node(&mut self, id: u32) {
        let users = &mut self.links[id as usize].users;
        *users -= 1;
        if *users == 0 {
            self.ending.push(id);
        }
    }

    fn drop_list(&mut self, id: u32) {
        let list = &mut self.lists[id as usize];
        list.users -= 1;
        if list.users > 0 {
            return;
        }
        let mut members = std::mem::take(&mut list.members);
        for &member in &members {
            self.drop_node(member);
        }
        // Its memory serves the next list.
        members.clear();
        self.lists[id as usize].members = members;
        self.free_lists.push(id);
    }

    /// The number of a node.
    #[inline]
    pub fn data(&self, id: NodeId) -> f64 {
        self.data[id.0 as usize]
    }

    /// Gives a node another number. What was computed from it keeps its own.
    pub fn set_data(&mut self, id: NodeId, number: f64) {
        self.data[id.0 as usize] = number;
    }

    /// The gradient that backward passes added up.
    pub fn grad(&self, id: NodeId) -> f64 {
        self.grad[id.0 as usize]
    }

    /// Replaces the gradient.
    pub fn set_grad(&mut self, id: NodeId, grad: f64) {
        self.grad[id.0 as usize] = grad;
    }
}
