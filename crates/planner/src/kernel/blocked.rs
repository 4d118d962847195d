//! The channel-blocked activation layout.

/// A batch of images in blocked layout: `[batch][channels / block][height][width][block]`, all f32.
///
/// The last block of channels is padded to `block` lanes. Padding lanes hold unspecified values: no kernel lets them reach a
/// real element. Images lie `batch_stride` apart, which is more than an image when the tensor is a range of channel
/// blocks of a larger one (concatenation without copies).
///
/// `N` is `i64` where all sizes are known, and what stands for sizes of images in code elsewhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct BlockedShape<N = i64> {
    /// Number of images.
    pub batch: N,
    /// Number of channels, without padding.
    pub channels: i64,
    /// Rows.
    pub height: N,
    /// Columns.
    pub width: N,
    /// Channels in a block: the lanes of the target's vectors.
    pub block: i64,
    /// Elements from one image to the next.
    pub batch_stride: N,
}

impl<N> BlockedShape<N> {
    /// The shape with `f` of each size of images, in one order for all shapes.
    pub fn map<M>(&self, f: &mut impl FnMut(&N) -> M) -> BlockedShape<M> {
        BlockedShape {
            batch: f(&self.batch),
            channels: self.channels,
            height: f(&self.height),
            width: f(&self.width),
            block: self.block,
            batch_stride: f(&self.batch_stride),
        }
    }

    /// Number of channel blocks.
    pub fn channel_blocks(&self) -> i64 {
        (self.channels + self.block - 1) / self.block
    }

    /// Channels with padding.
    pub fn padded_channels(&self) -> i64 {
        self.channel_blocks() * self.block
    }
}

impl BlockedShape {
    /// Images one after the other without a gap.
    pub fn dense(batch: i64, channels: i64, height: i64, width: i64, block: i64) -> BlockedShape {
        let mut shape = BlockedShape {
            batch,
            channels,
            height,
            width,
            block,
            batch_stride: 0,
        };
        shape.batch_stride = shape.image_elements();
        shape
    }

    /// Elements of one row of one channel block.
    pub fn row_elements(&self) -> i64 {
        self.width * self.block
    }

    /// Elements of one channel block: the distance to the next one.
    pub fn plane_elements(&self) -> i64 {
        self.height * self.row_elements()
    }

    /// Elements of one image, padding lanes included.
    pub fn image_elements(&self) -> i64 {
        self.channel_blocks() * self.plane_elements()
    }

    /// Elements from the first to the last of the batch: what a buffer must hold.
    pub fn elements(&self) -> i64 {
        (self.batch - 1).max(0) * self.batch_stride + self.image_elements()
    }

    /// [`BlockedShape::elements`] in bytes.
    pub fn bytes(&self) -> usize {
        self.elements() as usize * 4
    }
}
